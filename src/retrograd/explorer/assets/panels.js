// The panels beside the picture: a node, the source, the run at this moment, and answers. They show the view that is active.

function html(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
}

class Panels {
    constructor() {
        this.element = Object.fromEntries(
            ["node", "source", "run", "answers"].map((name) => [name, document.getElementById(`panel-${name}`)]));
        for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => this.open(tab.id.slice(4)));
        this.element.source.addEventListener("click", (event) => {
            const row = event.target.closest("[data-line]");
            if (row) this.view.chooseLine(Number(row.dataset.line));
        });
    }

    open(name) {
        for (const [key, element] of Object.entries(this.element)) {
            element.hidden = key !== name;
            document.getElementById(`tab-${key}`).setAttribute("aria-selected", String(key === name));
        }
        this.opened = name;
        if (this.view && name === "run") this.showRun();
        if (this.view && name === "source") this.scrollToLine();
    }

    /** Show another view. */
    setView(view) {
        this.view = view;
        this.fillSource();
        this.fillAnswers();
        this.showNode();
        this.showRun();
    }

    link(node, text) {
        const { model } = this.view;
        return html("button", { class: "link", onclick: () => this.view.chooseNode(node, true) }, text || model.title(node));
    }

    // --------------------------------------------------------------------------------------------------------- a node

    showNode() {
        const { view } = this, { model } = view, panel = this.element.node, node = view.selected;
        if (view.selectedGroup >= 0) {
            panel.replaceChildren(...this.aboutGroup(view.selectedGroup));
            return;
        }
        if (node < 0) {
            panel.replaceChildren(...this.aboutGraph());
            return;
        }
        if (node >= model.count) {
            panel.replaceChildren(...this.aboutCut(node));
            return;
        }
        const { nodes, run } = model, rows = [];
        const row = (name, ...value) => rows.push(html("tr", {}, html("th", {}, name), html("td", {}, ...value)));
        row("Gradient of", model.meta(node) || "–");
        if (nodes.line[node] >= 0) row("Made at", this.lineLink(nodes.line[node]));
        if (nodes.module[node] >= 0) {
            const [path, cls] = run.modules[nodes.module[node]];
            row("Module", `${path} (${cls})`);
        }
        if (nodes.parent[node] >= 0) row("Made by the backward of", this.link(nodes.parent[node]));
        row("Priority", nodes.seq[node] < 0 ? "first: a leaf" : String(nodes.seq[node]));
        const formula = run.formulas[nodes.op[node]];
        if (formula) row("Formula", html("pre", {}, formula));
        if (nodes.hooks[node]) row("Hooks", ...nodes.hooks[node].map((text) => html("div", {}, `⚓ ${text}`)));
        if (nodes.flags[node]) row("Result", `⚠ has ${FLAG_WORDS[nodes.flags[node]]}`);
        if (nodes.saved[node]) {
            row("Saved", html("table", { class: "saved" }, ...nodes.saved[node].map(([name, shape, dtype, size, flags]) =>
                html("tr", {}, html("td", {}, name), html("td", {}, `${shape} ${dtype}`),
                    html("td", {}, size ? bytes(size) : ""), html("td", {}, flags ? `⚠ ${FLAG_WORDS[flags]}` : "")))));
            row("Holds for itself", bytes(nodes.bytes[node]));
        }
        if (view.player.length) {
            const norm = view.player.norm[node], flags = view.player.flags[node] | view.player.gave[node];
            row("Now", `${STATE_WORDS[view.player.state[node]]}${Number.isNaN(norm) ? "" : `; norm ${short(norm)}`}`
                + `${flags ? ` ⚠ ${FLAG_WORDS[flags]}` : ""}`);
        }
        const inputs = [], users = [];
        for (let edge = 0; edge < model.edges.from.length; edge++) {
            if (model.edges.from[edge] === node) inputs.push(model.edges.to[edge]);
            if (model.edges.to[edge] === node) users.push(model.edges.from[edge]);
        }
        const list = (numbers) => numbers.slice(0, 40).flatMap((one) => [this.link(one), " "]);
        if (inputs.length) row("Gives to", ...list(inputs));
        if (users.length) row("Gets from", ...list(users), users.length > 40 ? `and ${users.length - 40} more` : null);
        panel.replaceChildren(
            html("h2", {}, model.title(node), model.variable(node) ? html("small", {}, ` ${model.variable(node)}`) : null),
            html("p", { class: "quiet" }, nodes.kind[node] === KIND.custom ? `${model.op(node)}, a custom function` : model.op(node)),
            html("table", { class: "facts" }, ...rows));
    }

    lineLink(line) {
        return html("button", { class: "link", onclick: () => this.view.chooseLine(line) }, this.view.model.lineName(line));
    }

    aboutGraph() {
        const { model, player } = this.view, { nodes, run } = model;
        const leaves = nodes.kind.filter((kind) => kind === KIND.leaf).length;
        const held = nodes.bytes.reduce((sum, size) => sum + size, 0);
        const rows = [["Nodes", String(model.count)], ["Edges", String(model.edges.from.length)], ["Leaves", String(leaves)],
            ["Saved for backward", bytes(held)], ["Lines", String(run.lines.length)], ["Modules called", String(run.modules.length)]];
        if (player.length) rows.push(["Events", String(player.length)]);
        const legend = [["leaf", "a leaf, or an input"], ["operation", "an operation"], ["output", "what is differentiated"],
            ["group", "a group, + opens it"], ["cut", "✂ history ends here"]];
        return [
            html("h2", {}, run.name),
            run.error ? html("p", { class: "error" }, `⚠ ${run.error}`) : null,
            html("table", { class: "facts" }, ...rows.map(([name, value]) => html("tr", {}, html("th", {}, name), html("td", {}, value)))),
            run.lines.length ? null : html("p", { class: "quiet" },
                "The lines of source are not known: make the graph inside of `with explorer.watch():`."),
            html("ul", { class: "legend" }, ...legend.map(([kind, text]) => html("li", { class: kind }, html("i"), text))),
            html("p", { class: "quiet" }, model.forward
                ? "Tangents go down along the lines, from the inputs to the result."
                : "Values went down along the lines, from the leaves to the result; gradients go up. Choose a node to see what it holds."),
        ].filter(Boolean);
    }

    aboutGroup(box) {
        const { view } = this, { scene, model } = view, group = scene.group(box);
        const held = group.nodes.reduce((sum, node) => sum + (node < model.count ? model.nodes.bytes[node] : 0), 0);
        const counts = new Map();
        for (const node of group.nodes) counts.set(model.op(node), (counts.get(model.op(node)) || 0) + 1);
        const top = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 12);
        return [
            html("h2", {}, group.label),
            html("p", { class: "quiet" }, group.detail),
            html("p", {}, `${group.nodes.length} nodes, ${bytes(held)} saved.`),
            html("button", { class: "wide", onclick: () => view.toggle(box) }, group.open ? "Close this group" : "Open this group"),
            html("table", { class: "facts" }, ...top.map(([op, count]) => html("tr", {}, html("th", {}, op), html("td", {}, `× ${count}`)))),
        ];
    }

    aboutCut(node) {
        const { model } = this.view, cut = model.cuts[node - model.count];
        return [
            html("h2", {}, `✂ ${cut.why}`),
            html("p", {}, "No gradient goes through here", cut.line >= 0 ? " — made at " : "", cut.line >= 0 ? this.lineLink(cut.line) : "", "."),
            html("p", {}, "Behind it: ", ...cut.leaves.flatMap((leaf) => [this.link(leaf), " "])),
            html("p", {}, "Used by: ", ...cut.users.slice(0, 40).flatMap((user) => [this.link(user), " "])),
        ];
    }

    // ---------------------------------------------------------------------------------------------------------- source

    fillSource() {
        const { model } = this.view, panel = this.element.source;
        if (!model.run.files.length) {
            panel.replaceChildren(html("p", { class: "quiet" },
                "No source is known. Make the graph inside of `with explorer.watch():` or record it by `with explorer.record():`."));
            return;
        }
        const size = model.run.lines.map(() => 0), held = model.run.lines.map(() => 0);
        for (let node = 0; node < model.count; node++) {
            if (model.nodes.line[node] >= 0) {
                size[model.nodes.line[node]]++;
                held[model.nodes.line[node]] += model.nodes.bytes[node];
            }
        }
        const most = Math.max(1, ...held);
        panel.replaceChildren(...model.run.files.map(({ name, first, text }, file) => {
            const byNumber = new Map(model.run.lines.map(([of, number], line) => [of === file ? number : -1, line]));
            const cuts = new Set(model.cuts.map(({ line }) => line));
            return html("details", { open: true }, html("summary", { title: name }, name.split("/").pop()), html("ol", {
                class: "code", start: first,
            }, ...text.map((line, position) => {
                const number = byNumber.get(first + position);
                const known = number !== undefined;
                const sign = known ? `${cuts.has(number) ? "✂ " : ""}${size[number] ? `${size[number]}×` : ""} ${held[number] ? bytes(held[number]) : ""}` : "";
                return html("li", {
                    "data-line": known ? number : null, tabindex: known ? 0 : null, value: first + position,
                    style: known ? `--held:${(100 * held[number]) / most}%` : null,
                }, html("code", {}, line || " "), known ? html("small", {}, sign) : null);
            })));
        }));
    }

    /** Mark lines in the source. */
    markLines(lines) {
        const wanted = new Set(lines);
        for (const row of this.element.source.querySelectorAll("[data-line]")) {
            row.classList.toggle("marked", wanted.has(Number(row.dataset.line)));
        }
        this.scrollToLine();
    }

    scrollToLine() {
        const row = this.element.source.querySelector(".marked");
        if (row && this.opened === "source") row.scrollIntoView({ block: "center" });
    }

    // ------------------------------------------------------------------------------------------------------------- run

    showRun() {
        const { view } = this, { player, model } = view, panel = this.element.run;
        if (this.opened !== "run") return;
        if (!player.length) {
            panel.replaceChildren(html("p", { class: "quiet" }, "This is a graph that did not run. `explorer.record(loss).backward()` records a run."));
            return;
        }
        const ready = player.ready(), filling = [];
        for (let node = 0; node < model.count && filling.length < 60; node++) {
            if (player.state[node] === STATE.filling) filling.push(node);
        }
        const running = [...player.lanes].map(([lane, node]) => html("li", {}, html("b", {}, player.events.lanes[lane]), " ", this.link(node)));
        panel.replaceChildren(
            html("h2", {}, `Event ${player.position} of ${player.length}`),
            html("p", { id: "words" }, player.words()),
            html("h3", {}, "Running"), html("ul", {}, ...running),
            ...(model.forward ? [] : [
                html("h3", {}, `Ready queue (${ready.length})`),
                html("ol", { class: "queue" }, ...ready.slice(0, 60).map(([node, depth]) => html("li", {}, this.link(node),
                    html("small", {}, ` ${model.nodes.seq[node] < 0 ? "leaf: first" : `priority ${model.nodes.seq[node]}`}${depth ? `, depth ${depth}` : ""}`)))),
                html("h3", {}, `Buffers that wait (${filling.length}${filling.length === 60 ? "+" : ""})`),
                html("ul", { class: "buffers" }, ...filling.map((node) => html("li", {}, this.link(node), html("small", {},
                    ` ${"●".repeat(Math.min(8, player.arrived[node]))}${"○".repeat(Math.min(8, player.waiting[node]))} ${player.arrived[node]} of ${player.arrived[node] + player.waiting[node]}`)))),
                html("h3", {}, "Memory held by saved tensors"),
                html("p", {}, bytes(player.memory)),
            ]));
    }

    // --------------------------------------------------------------------------------------------------------- answers

    fillAnswers() {
        const { view } = this, panel = this.element.answers;
        panel.replaceChildren(...view.model.run.answers.map(({ id, question, answer, items }) => html("section", { class: "answer", id: `answer-${id}` },
            html("h2", {}, question), html("p", {}, answer),
            html("ul", {}, ...items.map((item) => html("li", {}, html("button", {
                class: "link", onclick: () => view.chooseAnswer(item),
            }, item.text)))))));
    }
}
