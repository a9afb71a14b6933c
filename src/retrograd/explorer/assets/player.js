// A recorded run, at one moment: what each node, edge, buffer and queue looks like after so many events.

const EVENT = { begin: 0, ready: 1, run: 2, grad: 3, hook: 4, release: 5, done: 6, capture: 7, end: 8, error: 9, grow: 10 };
const STATE = { idle: 0, filling: 1, ready: 2, running: 3, done: 4, failed: 5 };
const STATE_WORDS = ["has not run yet", "waits for gradients", "is ready", "is running", "has run", "failed"];

class Player {
    constructor(model) {
        this.model = model;
        this.events = model.run.events;
        this.length = this.events ? this.events.type.length : 0;
        this.state = new Uint8Array(model.count);
        this.arrived = new Uint16Array(model.count);
        this.waiting = new Int32Array(model.count);
        this.norm = new Float64Array(model.count);
        this.flags = new Uint8Array(model.count);
        this.gave = new Uint8Array(model.count); // of what a node has given
        this.hooked = new Uint8Array(model.count);
        this.carried = new Uint8Array(model.edges.from.length);
        this.edgeNorm = new Float64Array(model.edges.from.length);
        this.edgeFlags = new Uint8Array(model.edges.from.length);
        this.reset();
        this.memoryAt = this.memoryCurve();
        this.mostMemory = this.memoryAt.reduce((most, held) => Math.max(most, held), 0);
        if (!this.events) this.state.fill(STATE.done); // nothing is played: nothing is dim
    }

    reset() {
        for (const column of [this.state, this.arrived, this.waiting, this.flags, this.gave, this.hooked, this.carried, this.edgeFlags]) {
            column.fill(0);
        }
        this.norm.fill(NaN);
        this.edgeNorm.fill(NaN);
        this.position = 0;
        this.memory = 0;
        this.queue = new Map(); // node -> how deep its pass is
        this.depth = new Map();
        this.open = 0;
        this.lanes = new Map();
    }

    /** Bytes that are held after each event: how much there is to draw, and its largest. */
    memoryCurve() {
        const curve = new Float64Array(this.length + 1);
        let held = (this.length && this.model.run.memory[0]) || 0; // what is there before the first pass
        curve[0] = held;
        for (let index = 0; index < this.length; index++) {
            if (this.events.type[index] === EVENT.begin && this.events.pass[index] > 0) held += this.model.run.memory[this.events.pass[index]] || 0;
            else if (this.events.type[index] === EVENT.grow) held += this.events.value[index];
            else if (this.events.type[index] === EVENT.release) held -= this.events.value[index];
            curve[index + 1] = held;
        }
        return curve;
    }

    /** Go to the moment after so many events. */
    seek(position) {
        position = Math.max(0, Math.min(this.length, Math.round(position)));
        if (position < this.position) this.reset();
        while (this.position < position) this.apply(this.position++);
        this.memory = this.memoryAt[position];
    }

    apply(index) {
        const { type, about, pass, norm, flags, value, lane } = this.events, node = about[index];
        switch (type[index]) {
            case EVENT.begin:
                if (value[index] === 0 && this.open === 0 && index > 0) { // a new pass: its nodes begin again
                    this.state.fill(STATE.idle);
                    this.arrived.fill(0);
                    this.carried.fill(0);
                    this.hooked.fill(0);
                }
                this.depth.set(pass[index], value[index]);
                this.open++;
                break;
            case EVENT.ready:
                this.state[node] = STATE.ready;
                this.queue.set(node, this.depth.get(pass[index]) || 0);
                break;
            case EVENT.run:
                this.state[node] = STATE.running;
                this.queue.delete(node);
                this.norm[node] = norm[index] === null ? NaN : norm[index];
                this.flags[node] = flags[index];
                this.lanes.set(lane[index], node);
                break;
            case EVENT.grad: {
                const target = this.model.forward ? this.model.edges.from[node] : this.model.edges.to[node];
                this.carried[node] = 1;
                this.edgeNorm[node] = norm[index] === null ? NaN : norm[index];
                this.edgeFlags[node] = flags[index];
                if (!this.model.forward) this.gave[this.model.edges.from[node]] |= flags[index];
                this.arrived[target] = this.state[target] === STATE.filling ? this.arrived[target] + 1 : 1;
                this.waiting[target] = value[index];
                this.state[target] = STATE.filling;
                break;
            }
            case EVENT.hook:
                this.hooked[node] = 1;
                break;
            case EVENT.done:
                this.state[node] = STATE.done;
                this.lanes.delete(lane[index]);
                if (norm[index] !== null) this.norm[node] = norm[index];
                if (this.model.forward) this.gave[node] |= flags[index];
                else this.flags[node] |= flags[index];
                break;
            case EVENT.capture:
                this.norm[node] = norm[index] === null ? NaN : norm[index];
                this.flags[node] |= flags[index];
                break;
            case EVENT.end:
                this.open--;
                for (const waiting of [...this.queue.keys()]) { // gradients that were asked for, and not more
                    if (this.open === 0) {
                        this.queue.delete(waiting);
                        this.state[waiting] = STATE.done;
                    }
                }
                break;
            case EVENT.error:
                this.state[node] = STATE.failed;
                break;
        }
    }

    /** The queue, in the order in which it is served: deeper passes, then nodes that were made later; leaves at once. */
    ready() {
        const number = (node) => (this.model.nodes.seq[node] < 0 ? Infinity : this.model.nodes.seq[node]);
        return [...this.queue].sort((a, b) => b[1] - a[1] || number(b[0]) - number(a[0]));
    }

    /** The events in which a NaN or an infinity first appears: given by a node that got none. */
    origins() {
        const came = new Uint8Array(this.model.count), found = [];
        for (let index = 0; index < this.length; index++) {
            const { type, about, flags } = this.events, kind = type[index];
            if (kind === EVENT.run) came[about[index]] = flags[index];
            if (!flags[index] || kind !== (this.model.forward ? EVENT.done : EVENT.grad)) continue;
            const node = this.model.forward ? about[index] : this.model.edges.from[about[index]];
            if (flags[index] & ~came[node]) found.push(index);
            came[node] |= flags[index];
        }
        return found;
    }

    /** The node that the last event was about. */
    current() {
        if (!this.position) return -1;
        const index = this.position - 1, about = this.events.about[index];
        if (this.events.type[index] !== EVENT.grad) return about;
        return this.model.forward ? this.model.edges.from[about] : this.model.edges.to[about];
    }

    /** The last event, in words. */
    words() {
        if (!this.length) return "";
        if (!this.position) return "before the run";
        const index = this.position - 1, { type, about, norm, flags, value, texts } = this.events;
        const name = (node) => this.model.title(node);
        const size = norm[index] === null ? "" : `, norm ${short(norm[index])}`;
        const marks = flags[index] ? ` ⚠ ${FLAG_WORDS[flags[index]]}` : "";
        const what = this.model.forward ? "tangent" : "gradient";
        const node = about[index];
        switch (type[index]) {
            case EVENT.begin: return value[index] ? `a pass begins inside of another (depth ${value[index]})` : "a pass begins";
            case EVENT.ready: return `${name(node)} is ready`;
            case EVENT.run: return `${name(node)} runs${size}${marks}`;
            case EVENT.grad: {
                const [a, b] = [name(this.model.edges.from[node]), name(this.model.edges.to[node])];
                return `${what} ${this.model.forward ? `${b} → ${a}` : `${a} → ${b}`}${size}${marks}`;
            }
            case EVENT.hook: return `${texts[value[index]]} of ${name(node)}`;
            case EVENT.release: return `${name(node)} lets go of ${bytes(value[index])}`;
            case EVENT.grow: return `while ${name(node)} runs, ${bytes(value[index])} are computed and kept`;
            case EVENT.done: return `${name(node)} is done${size}${marks}`;
            case EVENT.capture: return `the ${what} at ${name(node)} is handed out${size}${marks}`;
            case EVENT.end: return "the pass is over";
            case EVENT.error: return `${name(node)} failed: ${texts[value[index]]}`;
        }
        return "";
    }

    /** The next position (or the one before) at which a node runs. */
    nextRun(step) {
        for (let position = this.position + step; position > 0 && position <= this.length; position += step) {
            if (this.events.type[position - 1] === EVENT.run) return position;
        }
        return step > 0 ? this.length : 0;
    }
}
