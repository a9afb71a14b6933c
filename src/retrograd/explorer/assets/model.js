// What a run is, for drawing: names, neighbours, and the groups that nodes are collapsed into.

const KIND = { operation: 0, leaf: 1, custom: 2, input: 3, cut: 4, group: 5, copy: 6 };
const FLAG_WORDS = ["", "NaN", "Inf", "NaN Inf"];

/** A number of bytes, readable. */
function bytes(size) {
    for (const unit of ["B", "KiB", "MiB", "GiB"]) {
        if (size < 1024 || unit === "GiB") return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
        size /= 1024;
    }
}

/** A norm, short. */
function short(number) {
    if (number === null || number === undefined || Number.isNaN(number)) return "–";
    if (number === 0) return "0";
    const size = Math.abs(number);
    return size >= 1e4 || size < 1e-3 ? number.toExponential(1) : String(Number(number.toPrecision(3)));
}

class Model {
    constructor(run) {
        this.run = run;
        this.nodes = run.nodes;
        this.edges = run.edges;
        this.count = run.nodes.op.length;
        this.cuts = run.cuts;
        this.total = this.count + run.cuts.length; // boxes that are no groups
        this.roots = new Set(run.roots);
        this.forward = run.kind === "forward";
        this.order = this.inTime();
    }

    kind(node) {
        return node >= this.count ? KIND.cut : this.nodes.kind[node];
    }

    op(node) {
        return node >= this.count ? "cut" : this.run.ops[this.nodes.op[node]];
    }

    /** What stands in a box. */
    title(node) {
        if (node >= this.count) return `✂ ${this.cuts[node - this.count].why}`;
        const label = this.nodes.label[node];
        if (this.nodes.kind[node] === KIND.leaf || this.nodes.kind[node] === KIND.input) {
            return label || (this.nodes.kind[node] === KIND.leaf ? "leaf" : "input");
        }
        return this.op(node).replace(/Backward\d*$/, "");
    }

    /** Shapes, dtypes and devices of its outputs. */
    meta(node) {
        const meta = node >= this.count ? -1 : this.nodes.meta[node];
        return meta < 0 ? "" : this.run.metas[meta];
    }

    /** The variable that held the result of an operation, if one is known. */
    variable(node) {
        if (node >= this.count || this.nodes.kind[node] === KIND.leaf || this.nodes.kind[node] === KIND.input) return "";
        return this.nodes.label[node] || "";
    }

    shape(node) {
        return this.meta(node).split("; ").map((one) => one.slice(0, one.indexOf(")") + 1)).join(" ").slice(0, 40);
    }

    line(node) {
        return node >= this.count ? this.cuts[node - this.count].line : this.nodes.line[node];
    }

    lineName(line) {
        const [file, number] = this.run.lines[line];
        return `${this.run.files[file].name.split("/").pop()}:${number}`;
    }

    lineText(line) {
        const [file, number] = this.run.lines[line];
        const { first, text } = this.run.files[file];
        return (text[number - first] || "").trim();
    }

    /** Edges among boxes that are no groups, from above to below: [above, below, number of the edge or -1 at a cut]. */
    *allEdges() {
        const { from, to } = this.edges;
        for (let edge = 0; edge < from.length; edge++) yield [to[edge], from[edge], edge];
        for (const [number, cut] of this.cuts.entries()) {
            for (const leaf of cut.leaves) yield [leaf, this.count + number, -1];
            for (const user of cut.users) yield [this.count + number, user, -1];
        }
    }

    /** A position in time for each box: operations by their number, leaves before the first that uses them. */
    inTime() {
        const order = new Float64Array(this.total).fill(Infinity);
        for (let node = 0; node < this.count; node++) {
            if (this.nodes.seq[node] >= 0) order[node] = this.nodes.seq[node];
        }
        const { from, to } = this.edges;
        for (let edge = 0; edge < from.length; edge++) {
            if (this.nodes.seq[to[edge]] < 0) order[to[edge]] = Math.min(order[to[edge]], order[from[edge]] - 0.5);
        }
        for (const [number, cut] of this.cuts.entries()) {
            const own = cut.users.reduce((least, user) => Math.min(least, order[user] - 0.25), Infinity);
            order[this.count + number] = own;
            for (const leaf of cut.leaves) order[leaf] = Math.min(order[leaf], own - 0.25);
        }
        return order;
    }

    /**
     * The groups of a way of grouping: a list of {label, detail, parent, nodes}, parents first, and for each box the number
     * of its innermost group, or -1.
     */
    grouped(by) {
        const groups = [], keys = new Map(), groupOf = new Int32Array(this.total).fill(-1);
        const group = (key, label, detail, parent) => {
            if (!keys.has(key)) {
                keys.set(key, groups.length);
                groups.push({ label, detail, parent, nodes: [], open: false });
            }
            return keys.get(key);
        };
        const ofModule = new Map();
        const moduleGroup = (module) => {
            if (module < 0) return -1;
            if (!ofModule.has(module)) {
                const [path, cls, number, parent] = this.run.modules[module];
                const above = moduleGroup(parent); // as deep as modules are nested
                const label = `${path.split(".").slice(-2).join(".")}${number ? ` #${number + 1}` : ""}`;
                ofModule.set(module, group(`m${module}`, label, cls, above));
            }
            return ofModule.get(module);
        };
        for (let node = 0; node < this.count; node++) {
            let own = by === "module" || by === "both" ? moduleGroup(this.nodes.module[node]) : -1;
            const line = this.nodes.line[node];
            if ((by === "line" || by === "both") && line >= 0) {
                own = group(`l${own},${line}`, this.lineName(line), this.lineText(line), own);
            }
            groupOf[node] = own;
        }
        this.cuts.forEach((cut, number) => {
            if (cut.users.length) {
                const user = groupOf[cut.users[0]];
                groupOf[this.count + number] = by === "line" ? -1 : user;
            }
        });
        // A group of one node is that node.
        const sizes = groups.map(() => 0);
        for (const own of groupOf) if (own >= 0) sizes[own]++;
        const children = groups.map(() => 0);
        for (const one of groups) if (one.parent >= 0) children[one.parent]++;
        for (let node = 0; node < this.total; node++) {
            const own = groupOf[node];
            if (own >= 0 && sizes[own] === 1 && !children[own]) {
                groupOf[node] = groups[own].parent;
                groups[own].gone = true;
            }
        }
        for (let node = 0; node < this.total; node++) {
            for (let own = groupOf[node]; own >= 0; own = groups[own].parent) groups[own].nodes.push(node);
        }
        return { groups, groupOf };
    }

    /** Nodes that a search finds: all words somewhere in what is known of them. */
    search(text) {
        const words = text.toLowerCase().split(/\s+/).filter(Boolean);
        if (!words.length) return [];
        const found = [];
        const ofLine = this.run.lines.map((_, line) => `${this.lineName(line)} ${this.lineText(line)}`.toLowerCase());
        const ofModule = this.run.modules.map(([path, cls]) => `${path} ${cls}`.toLowerCase());
        for (let node = 0; node < this.total; node++) {
            const line = this.line(node), module = node < this.count ? this.nodes.module[node] : -1;
            const flags = node < this.count ? FLAG_WORDS[this.nodes.flags[node]] : "";
            const all = `${this.op(node)} ${this.title(node)} ${this.variable(node)} ${this.meta(node)} ${flags}`.toLowerCase()
                + (line < 0 ? "" : ofLine[line]) + (module < 0 ? "" : ofModule[module]);
            if (words.every((word) => all.includes(word))) found.push(node);
        }
        return found;
    }
}
