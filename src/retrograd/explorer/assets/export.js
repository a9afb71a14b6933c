// The picture as a file: SVG that stands alone, and the graph in the DOT language.

function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** All of the picture, as it looks now, as an SVG file. */
function asSvg(picture) {
    const { scene } = picture, [w, h] = scene.size, root = getComputedStyle(document.documentElement);
    const style = document.getElementById("picture-style").textContent
        .replace(/var\((--[\w-]+)\)/g, (_, name) => root.getPropertyValue(name).trim());
    const copy = new Picture(document.createElement("div"), picture.player, () => {});
    copy.marked = picture.marked;
    copy.setScene(scene);
    copy.materialize(scene.frames, scene.boxes);
    copy.update();
    copy.root.setAttribute("xmlns", SVG);
    copy.root.setAttribute("viewBox", `-20 -20 ${Math.ceil(w) + 40} ${Math.ceil(h) + 40}`);
    copy.root.setAttribute("width", Math.ceil(w) + 40);
    copy.root.setAttribute("height", Math.ceil(h) + 40);
    const background = svg("rect", {
        x: -20, y: -20, width: Math.ceil(w) + 40, height: Math.ceil(h) + 40, fill: root.getPropertyValue("--paper").trim(),
    });
    copy.root.prepend(svg("style", {}, style), background);
    for (const element of copy.root.querySelectorAll("[tabindex]")) element.removeAttribute("tabindex");
    return new XMLSerializer().serializeToString(copy.root);
}

/** The boxes as they are shown, with open groups as clusters, for Graphviz. */
function asDot(scene) {
    const quote = (text) => `"${text.replace(/\\/g, "\\\\").replace(/"/g, '\\"')}"`;
    const out = ["digraph {", "  node [shape=box, style=rounded];"];
    const inside = new Map();
    for (const box of [...scene.frames, ...scene.boxes]) {
        const container = scene.containerOf.get(box);
        if (!inside.has(container)) inside.set(container, []);
        inside.get(container).push(box);
    }
    const frames = new Set(scene.frames);
    const waiting = [[-1, 0, 1]]; // a container, how far it is written, how deep it is
    while (waiting.length) {
        const top = waiting[waiting.length - 1], [container, next, depth] = top, boxes = inside.get(container) || [];
        const space = "  ".repeat(depth);
        if (next === boxes.length) {
            waiting.pop();
            if (waiting.length) out.push(`${"  ".repeat(depth - 1)}}`);
            continue;
        }
        top[1]++;
        const box = boxes[next];
        if (frames.has(box)) {
            out.push(`${space}subgraph cluster_${box} {`, `${space}  label=${quote(scene.title(box))};`);
            waiting.push([box - scene.firstGroup, 0, depth + 1]);
            continue;
        }
        const node = scene.nodeOf(box), leaf = node >= 0 && scene.isLeaf(node);
        const shape = scene.isGroup(box) ? ", shape=box3d" : leaf ? ", shape=ellipse" : node >= scene.model.count ? ", style=dashed" : "";
        const sub = scene.subtitle(box);
        out.push(`${space}${box} [label=${quote(scene.title(box) + (sub ? `\n${sub}` : "")).replace(/\n/g, "\\n")}${shape}];`);
    }
    for (const { from, to, edges, cut } of scene.lines) {
        const label = edges.length > 1 ? `label="${edges.length}"` : "";
        const style = cut ? "style=dashed" : "";
        const both = [label, style].filter(Boolean).join(", ");
        out.push(`  ${from} -> ${to}${both ? ` [${both}]` : ""};`);
    }
    return [...out, "}", ""].join("\n");
}
