// The run as a strip: a lane for each thread with the nodes that it runs, the memory, marks of NaN and hooks; and the
// buttons that play it. Its place in the strip is the number of the event.

const LANE = 16, MEMORY = 42;

class Timeline {
    /** `mostMemory()` is what the scale of the memory goes to: one for all runs on the page. */
    constructor(element, player, changed, mostMemory) {
        this.player = player;
        this.mostMemory = mostMemory;
        this.changed = changed;
        this.speed = 8;
        const button = (name, label, title, act) => {
            const one = html("button", { class: name, title, "aria-label": title, onclick: act }, label);
            return one;
        };
        this.playButton = button("play", "▶", "Play ( space )", () => this.toggle());
        this.slider = html("input", { type: "range", class: "scrub", min: 0, max: player.length, value: 0, "aria-label": "moment of the run" });
        this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
        this.words = html("output", { class: "words" });
        const speed = html("select", { class: "speed", title: "Events a second", "aria-label": "events a second" },
            ...[2, 8, 30, 120, 1000].map((value) => html("option", { value, selected: value === 8 }, `${value}/s`)));
        speed.addEventListener("change", () => (this.speed = Number(speed.value)));
        this.follow = html("input", { type: "checkbox", class: "following", checked: true });
        this.canvas = html("canvas", { role: "img", "aria-label": "threads and memory over the run" });
        this.lanesNote = html("div", { class: "lane-names" });
        element.append(
            html("div", { class: "controls" },
                button("first", "|◀", "The beginning ( Home )", () => this.go(0)),
                button("back", "◀", "One event back ( ← )", () => this.go(player.position - 1)),
                this.playButton,
                button("step", "▷", "One event on ( → )", () => this.go(player.position + 1)),
                button("next", "⇥", "To the next node that runs ( shift → )", () => this.go(player.nextRun(1))),
                button("last", "▶|", "The end ( End )", () => this.go(player.length)),
                speed, html("label", { class: "follow", title: "Keep what happens in sight" }, this.follow, " follow"), this.words),
            this.slider, html("div", { class: "strip" }, this.canvas, this.lanesNote));
        this.strip = element.querySelector(".strip");
        this.canvas.addEventListener("pointerdown", (event) => {
            this.canvas.setPointerCapture(event.pointerId);
            this.fromPointer(event);
        });
        this.canvas.addEventListener("pointermove", (event) => {
            if (event.buttons) this.fromPointer(event);
        });
        new ResizeObserver(() => this.drawStrip()).observe(this.strip);
    }

    fromPointer(event) {
        const box = this.canvas.getBoundingClientRect();
        this.go(((event.clientX - box.left) / box.width) * this.player.length);
    }

    /** Go to a moment; the picture, the panels and other views follow. */
    go(position, follow = true) {
        this.player.seek(position);
        this.show();
        this.changed(follow);
    }

    show() {
        this.slider.value = this.player.position;
        this.words.textContent = this.player.words();
        this.drawHead();
    }

    toggle() {
        if (this.playing) {
            this.pause();
            return;
        }
        if (this.player.position >= this.player.length) this.go(0);
        this.playing = true;
        this.playButton.textContent = "⏸";
        let before = performance.now(), due = 0;
        const tick = (now) => {
            if (!this.playing) return;
            due += ((now - before) / 1000) * this.speed;
            before = now;
            if (due >= 1) {
                this.go(this.player.position + Math.floor(due));
                due %= 1;
            }
            if (this.player.position >= this.player.length) this.pause();
            else requestAnimationFrame(tick);
        };
        requestAnimationFrame(tick);
    }

    pause() {
        this.playing = false;
        this.playButton.textContent = "▶";
    }

    // ------------------------------------------------------------------------------------------------------------ drawing

    /** The strip without the head that moves: drawn when its size or the colours change. */
    drawStrip() {
        const { events, length, memoryAt } = this.player, width = this.strip.clientWidth, ratio = window.devicePixelRatio || 1;
        if (!width || !length) return;
        const most = this.mostMemory(), lanes = events.lanes.length;
        const height = lanes * LANE + (most ? MEMORY : 0) + 12;
        this.canvas.style.height = `${height}px`;
        this.canvas.width = width * ratio;
        this.canvas.height = height * ratio;
        this.still = document.createElement("canvas");
        this.still.width = this.canvas.width;
        this.still.height = this.canvas.height;
        const context = this.still.getContext("2d"), css = getComputedStyle(document.documentElement);
        const colour = (name) => css.getPropertyValue(name).trim(), x = (index) => (index / length) * width;
        context.scale(ratio, ratio);
        const began = new Map(), shades = [colour("--done-line"), colour("--ready-line"), colour("--memory-line")];
        const depth = new Map();
        for (let index = 0; index < length; index++) {
            const lane = events.lane[index], top = 10 + lane * LANE;
            if (events.type[index] === EVENT.begin) depth.set(events.pass[index], events.value[index]);
            if (events.type[index] === EVENT.run) began.set(events.about[index], index);
            if (events.type[index] === EVENT.done || events.type[index] === EVENT.error) {
                const start = began.get(events.about[index]) ?? index, level = depth.get(events.pass[index]) || 0;
                context.fillStyle = shades[level % shades.length];
                const inset = Math.min(level * 3, LANE - 6);
                context.fillRect(x(start), top + inset, Math.max(0.7, x(index + 1) - x(start) - 0.4), LANE - 3 - inset);
            }
        }
        const ticks = (indices, sign, name) => { // a mark above the lanes
            let last = -20;
            context.fillStyle = colour(name);
            context.font = "10px system-ui, sans-serif";
            for (const index of indices) {
                if (x(index) - last < 12) continue;
                last = x(index);
                context.fillText(sign, last - 4, 9);
            }
        };
        ticks([...events.type.keys()].filter((index) => events.type[index] === EVENT.hook), "⚓", "--ink");
        ticks(this.player.origins(), "⚠", "--bad");
        if (most) {
            const base = height - 2, top = base - MEMORY + 6;
            context.beginPath();
            context.moveTo(0, base);
            const stride = Math.max(1, Math.floor(length / (2 * width)));
            for (let index = 0; index <= length; index += stride) context.lineTo(x(index), base - (memoryAt[index] / most) * (base - top));
            context.lineTo(width, base - (memoryAt[length] / most) * (base - top));
            context.lineTo(width, base);
            context.fillStyle = colour("--memory");
            context.fill();
            context.strokeStyle = colour("--memory-line");
            context.stroke();
            context.fillStyle = colour("--ink");
            context.font = "10px system-ui, sans-serif";
            context.fillText(`memory of saved tensors, at most ${bytes(this.player.mostMemory)}`, 6, top + 9);
        }
        this.lanesNote.replaceChildren(...events.lanes.map((name, lane) => html("span", { style: `top:${10 + lane * LANE}px` }, name)));
        this.drawHead();
    }

    drawHead() {
        if (!this.still) return;
        const context = this.canvas.getContext("2d"), { width, height } = this.canvas;
        context.clearRect(0, 0, width, height);
        context.drawImage(this.still, 0, 0);
        const x = (this.player.position / this.player.length) * width;
        context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark").trim();
        context.fillRect(Math.min(width - 3, Math.max(0, x - 1)), 0, 3, height);
    }
}
