// What is drawn: the boxes of nodes and groups as they are open or closed, the lines between them, and where they go.

const ruler = document.createElement("canvas").getContext("2d");
const measured = new Map();

/** The width of a text in the fonts of the picture. */
function textWidth(text, font) {
    const key = font + text;
    if (!measured.has(key)) {
        ruler.font = font;
        measured.set(key, ruler.measureText(text).width);
    }
    return measured.get(key);
}

const FONT = { title: "600 13px system-ui, sans-serif", sub: "11px system-ui, sans-serif" };
/** Pictures with more boxes show a leaf beside each of the nodes that use it, rather than lines across the picture. */
const MANY_BOXES = 40;

class Scene {
    /** Boxes have numbers: nodes and cuts have their own, then come the groups, then copies of leaves. */
    constructor(model, { groups, groupOf }) {
        this.model = model;
        this.groups = groups;
        this.groupOf = groupOf;
        this.firstGroup = model.total;
        this.firstCopy = model.total + groups.length;
        this.copies = [];
        this.findBoxes();
        this.findLines();
        this.placed = false;
    }

    /** For each node the box that shows it: its own, or that of the outermost closed group around it. */
    findBoxes() {
        const { groups, groupOf, model } = this;
        const hidden = new Int32Array(groups.length).fill(-1);
        groups.forEach((group, number) => {
            const parent = group.parent;
            if (parent >= 0 && hidden[parent] >= 0) hidden[number] = hidden[parent];
            else if (!group.open && !group.gone) hidden[number] = number;
        });
        this.boxOf = new Int32Array(model.total);
        this.boxes = [];
        this.frames = [];
        this.containerOf = new Map(); // box -> the group around it, or -1
        const visible = (group) => {
            while (group >= 0 && groups[group].gone) group = groups[group].parent;
            return group;
        };
        groups.forEach((group, number) => {
            if (!group.nodes.length || group.gone) return;
            const box = this.firstGroup + number, parent = visible(group.parent);
            if (hidden[number] === number) this.boxes.push(box);
            else if (hidden[number] < 0) this.frames.push(box);
            else return;
            this.containerOf.set(box, parent);
        });
        for (let node = 0; node < model.total; node++) {
            const group = visible(groupOf[node]);
            if (group >= 0 && hidden[group] >= 0) {
                this.boxOf[node] = this.firstGroup + hidden[group];
            } else {
                this.boxOf[node] = node;
                this.boxes.push(node);
                this.containerOf.set(node, group);
            }
        }
    }

    /** Lines between boxes: {from, to, edges}, from above to below; a line may stand for many edges. */
    findLines() {
        const lines = new Map(), perLeaf = new Map();
        for (const [above, below, edge] of this.model.allEdges()) {
            const from = this.boxOf[above], to = this.boxOf[below];
            if (from === to) continue;
            const key = from * 2 ** 26 + to;
            if (!lines.has(key)) {
                lines.set(key, { from, to, edges: [], cut: edge < 0 });
                if (from === above && this.isLeaf(above)) perLeaf.set(above, (perLeaf.get(above) || 0) + 1);
            }
            lines.get(key).edges.push(edge);
        }
        this.lines = [...lines.values()];
        if (this.boxes.length <= MANY_BOXES) return;
        const spread = new Set([...perLeaf].filter(([, uses]) => uses > 2).map(([leaf]) => leaf));
        for (const line of this.lines) {
            if (!spread.has(line.from)) continue;
            const copy = this.firstCopy + this.copies.length;
            this.copies.push(line.from);
            this.containerOf.set(copy, this.containerOf.get(line.to));
            this.boxes.push(copy);
            line.from = copy;
        }
        this.boxes = this.boxes.filter((box) => !spread.has(box));
    }

    isLeaf(node) {
        return node < this.model.count && this.model.nodes.kind[node] === KIND.leaf;
    }

    isRound(node) {
        return node < this.model.count && [KIND.leaf, KIND.input].includes(this.model.nodes.kind[node]);
    }

    /** The layout knows boxes with corners: a line from a round one begins at its arc. */
    beginAtArc({ from, points }) {
        const radius = this.height[from] / 2, left = this.x[from] + radius, right = this.x[from] + this.width[from] - radius;
        const [px, py] = points[0], centre = px < left ? left : right, middle = this.y[from] + radius;
        if (px >= left && px <= right) return;
        const distance = Math.hypot(px - centre, py - middle);
        points[0] = [centre + ((px - centre) * radius) / distance, middle + ((py - middle) * radius) / distance];
    }

    isGroup(box) {
        return box >= this.firstGroup && box < this.firstCopy;
    }

    /** The node that a box is about; -1 for a group. */
    nodeOf(box) {
        if (box >= this.firstCopy) return this.copies[box - this.firstCopy];
        return box < this.firstGroup ? box : -1;
    }

    /** The nodes behind a box. */
    nodesOf(box) {
        return this.isGroup(box) ? this.groups[box - this.firstGroup].nodes : [this.nodeOf(box)];
    }

    group(box) {
        return this.groups[box - this.firstGroup];
    }

    title(box) {
        return this.isGroup(box) ? this.group(box).label : this.model.title(this.nodeOf(box));
    }

    subtitle(box) {
        if (!this.isGroup(box)) {
            const node = this.nodeOf(box);
            return `${this.model.variable(node)} ${this.model.shape(node)}`.trim();
        }
        const { detail, nodes } = this.group(box);
        const what = detail.length > 34 ? `${detail.slice(0, 33)}…` : detail;
        return `${what} · ${nodes.length}`;
    }

    order(box) {
        if (!this.isGroup(box)) return this.model.order[this.nodeOf(box)];
        const group = this.group(box);
        if (group.order === undefined) {
            group.order = Infinity;
            for (const node of group.nodes) group.order = Math.min(group.order, this.model.order[node]);
        }
        return group.order;
    }

    /** What the layout is asked: containers, innermost first, with sizes of boxes. */
    request() {
        const contents = this.findContents();
        const ports = this.findPorts(contents);
        const size = this.firstCopy + this.copies.length + ports.length;
        const width = new Float32Array(size), height = new Float32Array(size);
        const cache = new Map();
        for (const box of this.boxes) {
            const title = this.title(box), sub = this.subtitle(box), key = `${title}\n${sub}`;
            if (!cache.has(key)) cache.set(key, Math.max(textWidth(title, FONT.title), textWidth(sub, FONT.sub)));
            const runs = this.model.run.events && this.nodeOf(box) < this.model.count; // room for a line about the run
            width[box] = Math.max(runs ? 78 : 54, cache.get(key) + (this.isGroup(box) ? 44 : 26));
            height[box] = (sub ? 40 : 28) + (runs ? 14 : 0);
        }
        for (const box of this.frames) width[box] = textWidth(this.title(box), FONT.title) + 60;
        const first = (items) => [...items].reduce((least, item) => Math.min(least, this.order(item)), Infinity);
        const order = new Map(ports.map(({ box, items }) => [box, first(items) - 0.6]));
        for (const { box } of ports) [width[box], height[box]] = [1, 1];
        const when = (box) => order.get(box) ?? this.order(box);
        const containers = [...contents.values()].sort((a, b) => b.depth - a.depth);
        for (const one of containers) one.items.sort((a, b) => when(a) - when(b));
        return { containers, width, height };
    }

    /** The boxes of each open group, and how deep it is. */
    findContents() {
        const contents = new Map([[-1, { box: null, items: [], edges: [], depth: 0 }]]);
        const depth = (group) => {
            let levels = 0;
            for (; group >= 0; group = this.containerOf.get(this.firstGroup + group)) levels++;
            return levels;
        };
        for (const frame of this.frames) {
            const group = frame - this.firstGroup;
            contents.set(group, { box: frame, items: [], edges: [], depth: depth(group) });
        }
        for (const box of [...this.frames, ...this.boxes]) contents.get(this.containerOf.get(box)).items.push(box);
        return contents;
    }

    /**
     * Tell each container which lines lead from item to item in it. A line from outside that several items of a container
     * get (the input of a block that has a way around it) enters by a port, so that the layout leads it around the others.
     */
    findPorts(contents) {
        const seen = new Set(), entries = new Map();
        for (const line of this.lines) {
            let [a, b] = [line.from, line.to];
            let [ca, cb] = [this.containerOf.get(a), this.containerOf.get(b)];
            line.inside = [];
            while (ca !== cb) { // up to where both are in the same container
                if (contents.get(ca).depth >= contents.get(cb).depth) {
                    a = this.firstGroup + ca;
                    ca = this.containerOf.get(a);
                } else {
                    const entry = `${cb},${line.from}`;
                    if (!entries.has(entry)) entries.set(entry, { container: cb, items: new Set() });
                    entries.get(entry).items.add(b);
                    line.inside.unshift([entries.get(entry), b]);
                    b = this.firstGroup + cb;
                    cb = this.containerOf.get(b);
                }
            }
            const key = a * 2 ** 26 + b;
            line.route = key; // of the boxes or frames around its ends that are side by side
            if (a === b || seen.has(key)) continue;
            seen.add(key);
            contents.get(ca).edges.push([a, b]);
        }
        const ports = [...entries.values()].filter(({ items }) => items.size > 1);
        ports.forEach((port, number) => {
            port.box = this.firstCopy + this.copies.length + number;
            contents.get(port.container).items.push(port.box);
            for (const item of port.items) contents.get(port.container).edges.push([port.box, item]);
        });
        return ports;
    }

    /** Take in what the layout says. */
    place({ x, y, width, height, routes, size }) {
        Object.assign(this, { x, y, width, height, size });
        const byEnds = new Map(routes.map(([from, to, points]) => [from * 2 ** 26 + to, points]));
        for (const line of this.lines) {
            line.points = this.routed(line, byEnds) || this.direct(line);
            if (!this.isGroup(line.from) && this.isRound(this.nodeOf(line.from))) this.beginAtArc(line);
        }
        this.linesOf = new Map();
        this.lines.forEach((line, number) => {
            for (const box of [line.from, line.to]) {
                if (!this.linesOf.has(box)) this.linesOf.set(box, []);
                this.linesOf.get(box).push(number);
            }
        });
        this.placed = true;
    }

    /** The way that the layout found; where it leads from frame to frame, with what is inside of them. */
    routed({ from, to, route, inside }, byEnds) {
        const found = byEnds.get(route);
        if (!found) return null;
        const points = [...found], a = [this.x[from] + this.width[from] / 2, this.y[from] + this.height[from]];
        if (Math.floor(route / 2 ** 26) !== from) points.splice(0, 1, a, [a[0], Math.max(a[1], points[0][1] - 8)]);
        let at = route % 2 ** 26;
        for (const [{ box }, item] of inside) {
            const way = box === undefined ? undefined : byEnds.get(box * 2 ** 26 + item);
            if (way) {
                points.splice(-1, 1, ...way);
                at = item;
            }
        }
        const b = [this.x[to] + this.width[to] / 2, this.y[to]];
        if (at !== to) points.splice(-1, 1, [b[0], Math.min(b[1], points[points.length - 1][1] + 8)], b);
        return points;
    }

    /** From the bottom of one box to the top of the other. */
    direct({ from, to }) {
        const a = [this.x[from] + this.width[from] / 2, this.y[from] + this.height[from]];
        const b = [this.x[to] + this.width[to] / 2, this.y[to]];
        if (b[1] >= a[1]) {
            const bend = Math.min(40, (b[1] - a[1]) / 2);
            return [a, [a[0], a[1] + bend], [b[0], b[1] - bend], b];
        }
        const right = this.x[from] + this.width[from], start = [right, this.y[from] + this.height[from] / 2]; // back up
        return [start, [right + 30, start[1]], [b[0], b[1] - 40], b];
    }
}
