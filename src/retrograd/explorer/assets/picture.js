// The picture of a scene. Near, it is made of SVG elements, of the boxes that are in sight; from far away, where more than a
// thousand would be, of points on a canvas. Both show the moment of the run that the player is at.

const SVG = "http://www.w3.org/2000/svg";
const MOST_ELEMENTS = 900;

function svg(name, attributes, ...children) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
}

const curve = libraries.line().curve(libraries.curveBasis);

class Picture {
    constructor(stage, player, choose) {
        this.stage = stage;
        this.player = player;
        this.choose = choose;
        this.canvas = document.createElement("canvas");
        this.root = svg("svg", { class: "picture", role: "group", "aria-label": "graph" });
        this.world = svg("g", { class: "world" });
        this.layers = ["frames", "lines", "boxes"].map((name) => svg("g", { class: name }));
        this.world.append(...this.layers);
        this.root.append(arrowhead(), this.world);
        stage.append(this.canvas, this.root);
        this.shown = new Map();
        this.lineShown = new Map();
        this.marked = new Set();
        this.selected = -1;
        this.transform = libraries.zoomIdentity;
        this.zoom = libraries.zoom().scaleExtent([0.002, 4]).on("zoom", ({ transform }) => {
            this.transform = transform;
            this.fitted = false;
            this.schedule();
        });
        libraries.select(this.root).call(this.zoom).on("dblclick.zoom", null);
        this.root.addEventListener("click", (event) => this.clicked(event));
        this.root.addEventListener("keydown", (event) => {
            if (event.key === "Enter") this.clicked(event);
        });
        new ResizeObserver(() => { // a picture that was made to fit still does
            if (this.fitted) this.fit(this.least);
            this.schedule();
        }).observe(stage);
    }

    setScene(scene) {
        this.scene = scene;
        for (const layer of this.layers) layer.replaceChildren();
        this.shown.clear();
        this.lineShown.clear();
        this.markBoxes();
    }

    // ------------------------------------------------------------------------------------------------------- where it is

    /** Show all of the picture; or, where that were smaller than `least`, its lower end. */
    fit(least = 0) {
        const [w, h] = this.scene.size, box = this.stage.getBoundingClientRect();
        const scale = Math.min(1.25, (box.width - 32) / w, (box.height - 32) / h);
        let k = Math.max(0.002, scale), top = (box.height - k * h) / 2;
        if (k < least && this.scene.boxes.length <= MOST_ELEMENTS) {
            k = Math.min(1, Math.max(least, (box.width - 32) / w));
            top = box.height - 16 - k * h;
        }
        this.moveTo(libraries.zoomIdentity.translate((box.width - k * w) / 2, top).scale(k));
        [this.fitted, this.least] = [true, least];
    }

    moveTo(transform) {
        libraries.select(this.root).call(this.zoom.transform, transform);
    }

    zoomBy(factor) {
        libraries.select(this.root).call(this.zoom.scaleBy, factor);
    }

    /** Bring a box to the middle, near enough to read it. */
    centre(box) {
        const { scene } = this, size = this.stage.getBoundingClientRect();
        const k = Math.max(0.8, this.transform.k);
        const x = scene.x[box] + scene.width[box] / 2, y = scene.y[box] + scene.height[box] / 2;
        this.moveTo(libraries.zoomIdentity.translate(size.width / 2 - k * x, size.height / 2 - k * y).scale(k));
    }

    /** Move the picture, as little as need be, so that a box is in sight. */
    pan(box) {
        if (this.isInSight(box)) return;
        const { scene } = this, { k } = this.transform, size = this.stage.getBoundingClientRect();
        const x = scene.x[box] + scene.width[box] / 2, y = scene.y[box] + scene.height[box] / 2;
        this.moveTo(libraries.zoomIdentity.translate(size.width / 2 - k * x, size.height / 2 - k * y).scale(k));
    }

    isInSight(box) {
        const { scene } = this, { x, y, k } = this.transform, size = this.stage.getBoundingClientRect();
        const left = scene.x[box] * k + x, top = scene.y[box] * k + y;
        return left > 0 && top > 0 && left + scene.width[box] * k < size.width && top + scene.height[box] * k < size.height;
    }

    // ------------------------------------------------------------------------------------------------------------ drawing

    schedule() {
        if (!this.frame) {
            this.frame = requestAnimationFrame(() => {
                this.frame = 0;
                this.draw();
            });
        }
    }

    draw() {
        if (!this.scene || !this.scene.placed) return;
        const { scene, transform: { x, y, k } } = this, size = this.stage.getBoundingClientRect();
        const [left, top, right, bottom] = [-x / k, -y / k, (size.width - x) / k, (size.height - y) / k];
        const inSight = (box) => scene.x[box] < right && scene.x[box] + scene.width[box] > left
            && scene.y[box] < bottom && scene.y[box] + scene.height[box] > top;
        let boxes = scene.boxes, frames = scene.frames;
        if (boxes.length + frames.length > MOST_ELEMENTS) {
            boxes = boxes.filter(inSight);
            frames = frames.filter(inSight);
        }
        this.far = boxes.length + frames.length > MOST_ELEMENTS;
        this.stage.classList.toggle("far", this.far);
        if (this.far) {
            this.drawFar(size, inSight);
            return;
        }
        this.world.setAttribute("transform", `translate(${x},${y}) scale(${k})`);
        this.materialize(frames, boxes);
        this.update();
    }

    /** Have elements for these boxes and the lines at them, and no others. */
    materialize(frames, boxes) {
        const { scene } = this;
        const wanted = new Set([...frames, ...boxes]);
        for (const [box, element] of this.shown) {
            if (!wanted.has(box)) {
                element.remove();
                this.shown.delete(box);
            }
        }
        const lines = new Set();
        for (const box of boxes) for (const line of scene.linesOf.get(box) || []) lines.add(line);
        for (const [line, element] of this.lineShown) {
            if (!lines.has(line)) {
                element.remove();
                this.lineShown.delete(line);
            }
        }
        for (const frame of frames) {
            if (!this.shown.has(frame)) this.show(frame, frameElement(scene, frame), 0);
        }
        for (const line of lines) {
            if (!this.lineShown.has(line)) {
                const element = lineElement(scene.lines[line]);
                this.layers[1].append(element);
                this.lineShown.set(line, element);
            }
        }
        for (const box of boxes) {
            if (!this.shown.has(box)) this.show(box, boxElement(scene, box), 2);
        }
    }

    show(box, element, layer) {
        this.layers[layer].append(element);
        this.shown.set(box, element);
    }

    /** Bring what is shown to the moment of the run. */
    update() {
        if (!this.scene || !this.scene.placed) return;
        if (this.far) {
            this.draw();
            return;
        }
        const current = this.player.current(), played = this.player.length > 0;
        const order = new Map(played ? this.player.ready().slice(0, 99).map(([node], position) => [node, position + 1]) : []);
        for (const [box, element] of this.shown) {
            updateBox(this, box, element, current, played, order);
        }
        const last = this.player.position - 1;
        const flowing = played && last >= 0 && this.player.events.type[last] === EVENT.grad ? this.player.events.about[last] : -1;
        for (const [number, element] of this.lineShown) {
            const line = this.scene.lines[number];
            let carried = 0, flags = 0, flow = false;
            for (const edge of line.edges) {
                if (edge < 0) continue;
                carried += this.player.carried[edge];
                flags |= this.player.carried[edge] ? this.player.edgeFlags[edge] : 0;
                flow ||= edge === flowing;
            }
            const name = `line${line.cut ? " cut" : ""}${played && !line.cut ? (carried ? " carried" : " waiting") : ""}${flow ? " flow" : ""}`
                + `${flags ? " bad" : ""}${this.markedBoxes.has(line.from) && this.markedBoxes.has(line.to) ? " marked" : ""}`;
            if (element.className.baseVal !== name) element.setAttribute("class", name);
        }
    }

    /** From far away: a point a box, a line a line. Boxes are written as pixels, which takes a tenth of drawing them. */
    drawFar(size, inSight) {
        const { scene, transform: { x, y, k } } = this, ratio = window.devicePixelRatio || 1, style = this.colours();
        const w = Math.round(size.width * ratio), h = Math.round(size.height * ratio);
        const context = this.canvas.getContext("2d", { willReadFrequently: true });
        if (!this.image || this.image.width !== w || this.image.height !== h) {
            [this.canvas.width, this.canvas.height] = [w, h];
            this.image = context.createImageData(w, h);
        }
        const pixels = new Uint32Array(this.image.data.buffer);
        // The lines do not change while the run is played: they are drawn once, when the picture has come to rest.
        const key = JSON.stringify([this.transform, w, h, style.line]);
        if (this.still && this.still.key === key && this.still.scene === scene) {
            pixels.set(this.still.pixels);
        } else {
            pixels.fill(0);
            clearTimeout(this.resting);
            this.resting = setTimeout(() => {
                this.drawLines(w, h, ratio, style, inSight, key);
                this.schedule();
            }, 60);
        }
        const colours = this.farColours(style);
        for (const box of scene.boxes) {
            if (!inSight(box)) continue;
            const left = Math.max(0, Math.round((scene.x[box] * k + x) * ratio)), top = Math.max(0, Math.round((scene.y[box] * k + y) * ratio));
            const right = Math.min(w, left + Math.max(2, Math.round(scene.width[box] * k * ratio)));
            const bottom = Math.min(h, top + Math.max(2, Math.round(scene.height[box] * k * ratio)));
            const colour = colours(box);
            for (let row = top; row < bottom; row++) pixels.fill(colour, row * w + left, row * w + right);
        }
        context.putImageData(this.image, 0, 0);
        this.place(context, ratio);
        context.lineWidth = Math.max(1, 0.6 / k);
        context.strokeStyle = style.frame;
        for (const frame of scene.frames) context.strokeRect(scene.x[frame], scene.y[frame], scene.width[frame], scene.height[frame]);
        const current = scene.boxOf[this.player.current()];
        if (this.player.length && current !== undefined) this.ring(context, current, style.mark, 14 / k);
        if (this.selected >= 0) this.ring(context, scene.boxOf[this.selected], style.mark, 9 / k);
    }

    /** The pixel of a box, at this moment of the run. */
    farColours(style) {
        const { scene, player, markedBoxes } = this, played = player.length > 0, { flags } = scene.model.nodes;
        const pixel = (text) => 0xff000000 + parseInt(text.slice(5, 7) + text.slice(3, 5) + text.slice(1, 3), 16);
        const states = style.states.map(pixel), [bad, mark, leaf, other] = [style.bad, style.mark, style.leaf, style.box].map(pixel);
        return (box) => {
            if (markedBoxes.has(box)) return mark;
            const node = scene.isGroup(box) ? scene.group(box).nodes[0] : scene.nodeOf(box);
            if (node >= player.state.length) return bad; // a cut
            if (player.flags[node] || player.gave[node] || (!played && flags[node])) return bad;
            if (played) return states[player.state[node]];
            return scene.isLeaf(node) ? leaf : other;
        };
    }

    place(context, ratio) {
        const { x, y, k } = this.transform;
        context.setTransform(ratio * k, 0, 0, ratio * k, ratio * x, ratio * y);
    }

    drawLines(w, h, ratio, style, inSight, key) {
        const { scene, transform: { k } } = this, canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [w, h];
        const context = canvas.getContext("2d", { willReadFrequently: true });
        this.place(context, ratio);
        context.lineWidth = Math.max(1, 0.6 / k);
        context.globalAlpha = Math.max(0.03, Math.min(0.35, 600 / scene.lines.length));
        context.strokeStyle = style.line;
        context.beginPath();
        for (const { from, to } of scene.lines) {
            if (!inSight(from) && !inSight(to)) continue;
            context.moveTo(scene.x[from] + scene.width[from] / 2, scene.y[from] + scene.height[from]);
            context.lineTo(scene.x[to] + scene.width[to] / 2, scene.y[to]);
        }
        context.stroke();
        this.still = { pixels: new Uint32Array(context.getImageData(0, 0, w, h).data.buffer), key, scene };
    }

    ring(context, box, colour, radius) {
        const { scene } = this;
        context.strokeStyle = colour;
        context.lineWidth = radius / 4;
        context.beginPath();
        context.arc(scene.x[box] + scene.width[box] / 2, scene.y[box] + scene.height[box] / 2, radius, 0, 7);
        context.stroke();
    }

    colours() {
        const style = getComputedStyle(document.documentElement), value = (name) => style.getPropertyValue(name).trim();
        return {
            states: ["--frame-line", "--ready-line", "--ready-line", "--running", "--done-line", "--bad"].map(value),
            leaf: value("--leaf-line"), box: value("--box-line"), bad: value("--bad"), mark: value("--mark"),
            line: value("--line"), frame: value("--frame-line"),
        };
    }

    // ----------------------------------------------------------------------------------------------------------- choosing

    clicked(event) {
        const element = event.target.closest("[data-box]");
        if (element) {
            event.preventDefault();
            this.choose(Number(element.dataset.box), event.target.closest(".toggle") !== null || event.detail === 2);
            return;
        }
        if (!this.far) {
            this.choose(-1, false);
            return;
        }
        const box = this.nearest(event);
        if (box >= 0) this.choose(box, false);
    }

    /** The box on the canvas that a click is next to. */
    nearest(event) {
        const { scene, transform: { x, y, k } } = this, size = this.stage.getBoundingClientRect();
        const [px, py] = [(event.clientX - size.left - x) / k, (event.clientY - size.top - y) / k];
        let best = -1, least = (24 / k) ** 2;
        for (const box of scene.boxes) {
            const dx = Math.max(scene.x[box] - px, 0, px - scene.x[box] - scene.width[box]);
            const dy = Math.max(scene.y[box] - py, 0, py - scene.y[box] - scene.height[box]);
            if (dx * dx + dy * dy < least) [best, least] = [box, dx * dx + dy * dy];
        }
        return best;
    }

    /** Mark nodes; the boxes that show them are marked. */
    mark(nodes, selected = -1) {
        this.marked = new Set(nodes);
        this.selected = selected;
        this.markBoxes();
        this.schedule();
    }

    markBoxes() {
        this.markedBoxes = new Set();
        for (const node of this.marked) this.markedBoxes.add(this.scene.boxOf[node]);
        this.scene.copies.forEach((leaf, number) => {
            if (this.marked.has(leaf)) this.markedBoxes.add(this.scene.firstCopy + number);
        });
    }
}

// ----------------------------------------------------------------------------------------------------------------- elements

function arrowhead() {
    return svg("defs", {}, svg("marker", {
        id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto",
        markerUnits: "userSpaceOnUse",
    }, svg("path", { d: "M0,0.8 L7.5,4 L0,7.2 z", class: "arrow" })));
}

function lineElement(line) {
    const element = svg("path", { class: "line", d: curve(line.points), "marker-end": "url(#arrow)" });
    if (line.edges.length > 1) element.append(svg("title", {}, `${line.edges.length} edges`));
    return element;
}

function frameElement(scene, box) {
    const [x, y, w, h] = [scene.x[box], scene.y[box], scene.width[box], scene.height[box]], group = scene.group(box);
    const label = svg("text", { x: 12, y: 18, class: "frame-title" }, "▾ ", group.label);
    const room = Math.floor((w - textWidth(group.label, FONT.title) - 40) / 6.5);
    label.append(svg("tspan", { class: "frame-detail", dx: 8 }, room > 4 ? group.detail.slice(0, room) : ""));
    return svg("g", {
        class: "frame toggle", "data-box": box, tabindex: 0, role: "button", transform: `translate(${x},${y})`,
        "aria-label": `${group.label}, ${group.detail}, open group of ${group.nodes.length} nodes`,
    }, svg("rect", { width: w, height: h, rx: 10 }), label);
}

const SHAPES = ["operation", "leaf", "custom", "input", "cut"];

function boxElement(scene, box) {
    const { model } = scene, node = scene.nodeOf(box), group = scene.isGroup(box);
    const [w, h] = [scene.width[box], scene.height[box]];
    const kind = group ? "group" : SHAPES[model.kind(node)];
    const element = svg("g", {
        "data-box": box, tabindex: 0, role: "button", transform: `translate(${scene.x[box]},${scene.y[box]})`,
    });
    element.kindName = kind + (box >= scene.firstCopy ? " copy" : "") + (!group && model.roots.has(node) ? " output" : "");
    if (group) {
        element.append(svg("rect", { class: "stack", x: 5, y: 5, width: w, height: h, rx: 8 }));
    } else if (model.roots.has(node)) {
        element.append(svg("rect", { class: "outer", x: -4, y: -4, width: w + 8, height: h + 8, rx: 11 }));
    }
    element.append(svg("rect", { class: "body", width: w, height: h, rx: kind === "leaf" || kind === "input" ? h / 2 : 7 }));
    if (group) element.append(svg("rect", { class: "progress", x: 0, y: h - 4, width: 0, height: 4 }));
    const sub = scene.subtitle(box);
    element.append(
        svg("text", { class: "title", x: w / 2, y: sub ? 17 : 18.5 }, scene.title(box)),
        svg("text", { class: "sub", x: w / 2, y: 32 }, sub),
        svg("text", { class: "mark", x: w - 10, y: -3 }),
        svg("text", { class: "state", x: w / 2, y: h - 7 }),
    );
    if (group) element.append(svg("text", { class: "toggle plus", x: w - 9, y: 14 }, "+"));
    return element;
}

const STATE_SIGNS = ["", "", "", "▶", "✓", "✕"];

/** Bring the element of a box to the moment: its classes, its signs, its label for those who do not see it. */
function updateBox(picture, box, element, current, played, order) {
    const { scene, player } = picture, { model } = scene;
    const marked = picture.markedBoxes.has(box), node = scene.nodeOf(box);
    const selected = picture.selected >= 0 && (node === picture.selected || scene.boxOf[picture.selected] === box);
    if (element.classList.contains("frame")) {
        element.setAttribute("class", `frame toggle${marked ? " marked" : ""}${selected ? " selected" : ""}`);
        return;
    }
    let state = STATE.done, sign = "", mark = "", done = 0, flags = 0, hooks = false, now = false, first = "";
    const nodes = scene.nodesOf(box);
    if (node >= 0 && node < model.count) {
        state = player.state[node];
        hooks = model.nodes.hooks[node] !== null;
        flags = model.nodes.flags[node] | player.flags[node] | player.gave[node];
        first = player.gave[node] & ~player.flags[node] ? " begins" : "";
        now = node === current;
        if (played) {
            sign = STATE_SIGNS[state];
            if (state === STATE.ready) sign = order.has(node) ? `#${order.get(node)}` : "…";
            if (state === STATE.filling) sign = "●".repeat(Math.min(5, player.arrived[node])) + "○".repeat(Math.min(5, player.waiting[node]));
            if (state >= STATE.running && !Number.isNaN(player.norm[node])) sign += ` ${short(player.norm[node])}`;
        }
        if (hooks) mark += player.hooked[node] ? "⚓!" : "⚓";
    } else if (node < 0) {
        state = STATE.idle;
        for (const one of nodes) {
            if (one >= model.count) continue;
            done += player.state[one] === STATE.done;
            flags |= model.nodes.flags[one] | player.flags[one] | player.gave[one];
            if (player.state[one] === STATE.running || player.state[one] === STATE.failed) state = player.state[one];
            else if (state < STATE.running && player.state[one] !== STATE.done) state = Math.max(state, player.state[one]);
            now ||= one === current;
        }
        if (done === nodes.length) state = STATE.done;
        if (played && done) sign = `${done}/${nodes.length}`;
    }
    if (flags) mark = `⚠ ${FLAG_WORDS[flags]}${first} ${mark}`;
    const name = `box ${element.kindName}${played && node < model.count ? ` s${state}` : ""}${flags ? " bad" : ""}${marked ? " marked" : ""}`
        + `${selected ? " selected" : ""}${now && played ? " now" : ""}`;
    const signature = `${name}|${sign}|${mark}|${done}`;
    if (element.signature === signature) return;
    element.signature = signature;
    element.setAttribute("class", name);
    element.querySelector(".state").textContent = sign;
    element.querySelector(".mark").textContent = mark;
    const progress = element.querySelector(".progress");
    if (progress) progress.setAttribute("width", played ? (scene.width[box] * done) / nodes.length : 0);
    const what = node < 0 ? `closed group of ${nodes.length} nodes, ${scene.group(box).detail}` : `${model.variable(node)} ${model.meta(node)}`.trim();
    element.setAttribute("aria-label", `${scene.title(box)}, ${what}${played ? `, ${STATE_WORDS[state]}` : ""}${flags ? `, has ${FLAG_WORDS[flags]}` : ""}`);
}
