// The page: reads its data, makes a view of each run, and listens to buttons and keys.

class Page {
    constructor(data) {
        this.timing = {};
        this.startWorker();
        this.panels = new Panels();
        this.views = data.runs.map((run) => new View(run, this));
        document.getElementById("views").append(...this.views.map((view) => view.element));
        document.body.classList.toggle("several", this.views.length > 1);
        document.body.classList.toggle("still", this.views.every((view) => !view.timeline));
        this.active = this.views[0];
        this.activate(this.active, true);
        this.panels.open("node");
        this.listen();
    }

    /** The first picture. */
    async begin() {
        const by = this.views[0].firstGrouping();
        document.getElementById("grouping").value = by;
        await Promise.all(this.views.map((view) => view.group(by)));
        for (const view of this.views) if (view.timeline) view.timeline.go(0, false);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        this.timing.firstPicture = performance.now();
        document.body.dataset.ready = "true";
    }

    // ------------------------------------------------------------------------------------------------------------- layout

    startWorker() {
        this.waiting = new Map();
        this.asked = 0;
        try {
            const text = `${document.getElementById("library").textContent}\n${document.getElementById("layout").textContent}`;
            this.worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
            this.worker.onmessage = ({ data }) => {
                this.waiting.get(data.number)(data.result);
                this.waiting.delete(data.number);
            };
            this.worker.onerror = () => { // refused, as some frames do: here, then
                this.worker = null;
                for (const [number, done] of this.waiting) done(layoutScene(this.requests.get(number), libraries));
                this.waiting.clear();
            };
        } catch {
            this.worker = null;
        }
        this.requests = new Map();
    }

    layout(scene) {
        if (!this.worker) return Promise.resolve(layoutScene(scene, libraries));
        return new Promise((done) => {
            const number = this.asked++;
            this.waiting.set(number, done);
            this.requests = new Map([[number, scene], ...[...this.requests].filter(([one]) => this.waiting.has(one))]);
            this.worker.postMessage({ number, scene });
        });
    }

    // -------------------------------------------------------------------------------------------------------------- views

    activate(view, first = false) {
        if (this.active === view && !first) return;
        this.active = view;
        for (const one of this.views) one.element.classList.toggle("active", one === view);
        this.panels.setView(view);
    }

    mostMemory() {
        return this.views.reduce((most, { player }) => Math.max(most, player.mostMemory), 0);
    }

    /** Runs that are side by side are played in step: each is as far as the others. */
    keepStep(leader) {
        const share = leader.player.position / leader.player.length;
        for (const view of this.views) {
            if (view !== leader && view.timeline) view.timeline.go(share * view.player.length, false);
        }
    }

    // ------------------------------------------------------------------------------------------------------------- events

    listen() {
        const on = (id, event, act) => document.getElementById(id).addEventListener(event, act);
        const all = (act) => () => this.views.forEach(act);
        const found = document.getElementById("found");
        on("search", "input", (event) => {
            const counts = this.views.map((view) => view.search(event.target.value));
            found.textContent = event.target.value ? counts.join(" | ") : "";
        });
        on("search", "keydown", (event) => {
            if (event.key === "Enter") this.active.nextFound();
            if (event.key === "Escape") event.target.blur();
        });
        on("grouping", "change", (event) => this.views.forEach((view) => view.group(event.target.value)));
        on("collapse", "click", all((view) => view.openAll(false)));
        on("expand", "click", all((view) => view.openAll(true)));
        on("fit", "click", all((view) => view.picture.fit()));
        on("svg", "click", () => save("graph.svg", "image/svg+xml", asSvg(this.active.picture)));
        on("dot", "click", () => save("graph.dot", "text/vnd.graphviz", asDot(this.active.scene)));
        on("theme", "click", () => this.changeTheme());
        on("help", "click", () => document.getElementById("keys").showModal());
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
        document.addEventListener("keydown", (event) => this.key(event));
    }

    changeTheme() {
        const root = document.documentElement;
        const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
        root.dataset.theme = dark ? "light" : "dark";
        this.recolour();
    }

    recolour() {
        for (const view of this.views) {
            view.picture.schedule();
            if (view.timeline) view.timeline.drawStrip();
        }
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.target.matches("input[type=search], select, dialog *")) return;
        const { timeline, player, picture } = this.active;
        const go = (position) => timeline && timeline.go(position);
        const select = document.getElementById("grouping");
        const keys = {
            " ": () => timeline && timeline.toggle(),
            ArrowRight: () => go(event.shiftKey ? player.nextRun(1) : player.position + 1),
            ArrowLeft: () => go(event.shiftKey ? player.nextRun(-1) : player.position - 1),
            Home: () => go(0),
            End: () => go(player.length),
            "/": () => document.getElementById("search").focus(),
            "+": () => picture.zoomBy(1.3),
            "-": () => picture.zoomBy(1 / 1.3),
            0: () => picture.fit(),
            e: () => this.views.forEach((view) => view.openAll(true)),
            c: () => this.views.forEach((view) => view.openAll(false)),
            g: () => {
                select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
                select.dispatchEvent(new Event("change"));
            },
            t: () => this.changeTheme(),
            "?": () => document.getElementById("keys").showModal(),
            Escape: () => this.active.choose(-1, false),
        };
        if (event.key === " " && event.target.matches("button, [role=button]")) return; // which it presses
        if (event.target.matches("input[type=range]") && !["/", " ", "t"].includes(event.key)) return; // which moves by itself
        if (!(event.key in keys)) return;
        event.preventDefault();
        keys[event.key]();
    }
}

const explorer = new Page(JSON.parse(document.getElementById("data").textContent));
window.explorer = explorer;
explorer.begin();
