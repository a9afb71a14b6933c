// One run on the page: its picture, its strip, and what is chosen in it.

/** A picture shows at most so many boxes when the page opens; groups are opened as long as it is fewer. */
const FIRST_BOXES = 48;
const GROUP_FROM = 60;
/** Smaller than this, texts cannot be read: a taller picture begins at its end, where the gradients do. */
const READABLE = 0.42;

class View {
    constructor(run, page) {
        this.page = page;
        this.model = new Model(run);
        this.player = new Player(this.model);
        this.stage = html("div", { class: "stage" });
        this.wait = html("div", { class: "wait", role: "status" }, "laying out…");
        this.stage.append(this.wait);
        this.strip = html("div", { class: "timeline" });
        this.element = html("section", { class: `view ${run.kind}`, "aria-label": run.name }, html("h2", { class: "view-title" }, run.name), this.stage, this.strip);
        this.element.addEventListener("pointerdown", () => page.activate(this), true);
        this.picture = new Picture(this.stage, this.player, (box, toggle) => this.choose(box, toggle));
        if (this.player.length) this.timeline = new Timeline(this.strip, this.player, (follow) => this.moved(follow), () => page.mostMemory());
        else this.strip.remove();
        this.selected = -1;
        this.selectedGroup = -1;
    }

    // ------------------------------------------------------------------------------------------------------------ grouping

    /** The grouping to begin with: none for small graphs, else the one that there is something known of. */
    firstGrouping() {
        if (this.model.count <= GROUP_FROM) return "none";
        if (this.model.run.modules.length) return "module";
        return this.model.run.lines.length ? "line" : "none";
    }

    /** Group anew, opened as far as the picture stays small. */
    async group(by) {
        this.by = by;
        this.groups = this.model.grouped(by);
        this.openSome();
        await this.arrange(true);
    }

    openSome() {
        const { groups } = this.groups;
        // What opening a group adds: its groups and its own nodes, in place of it.
        const inside = groups.map(() => 0);
        for (const own of this.groups.groupOf) if (own >= 0) inside[own]++;
        for (const group of groups) if (group.parent >= 0 && !group.gone) inside[group.parent]++;
        let level = groups.map((_, number) => number).filter((number) => groups[number].parent < 0);
        let boxes = level.length;
        for (const own of this.groups.groupOf) boxes += own < 0 ? 1 : 0;
        // All groups of a level are opened, or none of them.
        while (level.length) {
            boxes += level.reduce((sum, number) => sum + inside[number] - 1, 0);
            if (boxes > FIRST_BOXES) break;
            const opened = new Set(level);
            for (const number of level) groups[number].open = true;
            level = groups.map((_, number) => number).filter((number) => opened.has(groups[number].parent));
        }
    }

    openAll(open) {
        for (const group of this.groups.groups) group.open = open;
        return this.arrange(true);
    }

    /** Open or close one group; the picture stays where it is, around the group. */
    toggle(box) {
        const group = this.scene.group(box);
        group.open = !group.open;
        return this.arrange(false, box);
    }

    /** Make the scene, have it laid out, and draw it. */
    async arrange(fit, around = null) {
        const scene = new Scene(this.model, this.groups);
        this.wait.hidden = false;
        const placed = await this.page.layout(scene.request());
        scene.place(placed);
        this.wait.hidden = true;
        this.scene = scene;
        this.picture.setScene(scene);
        if (this.selectedGroup >= 0 && !scene.containerOf.has(this.selectedGroup)) this.selectedGroup = -1;
        if (fit || around === null) this.picture.fit(READABLE);
        else if (!this.picture.isInSight(around)) this.picture.centre(around);
        this.picture.draw();
        if (this.page.active === this) this.page.panels.showNode();
    }

    // ------------------------------------------------------------------------------------------------------------ choosing

    /** A box was clicked: -1 chooses nothing. */
    choose(box, toggle) {
        this.page.activate(this);
        if (box < 0) {
            this.mark([], -1, []);
            return;
        }
        if (this.scene.isGroup(box)) {
            if (toggle) {
                this.toggle(box);
                return;
            }
            this.selectedGroup = box;
            this.mark(this.scene.nodesOf(box), -1, [...new Set(this.scene.nodesOf(box).map((node) => this.model.line(node)))], box);
            this.page.panels.open("node");
            return;
        }
        this.chooseNode(this.scene.nodeOf(box), false);
    }

    chooseNode(node, move) {
        const line = this.model.line(node);
        this.mark([node], node, line < 0 ? [] : [line]);
        if (move) this.reveal(node);
        if (this.page.panels.opened !== "source") this.page.panels.open("node");
    }

    chooseLine(line) {
        const nodes = [];
        for (let node = 0; node < this.model.total; node++) if (this.model.line(node) === line) nodes.push(node);
        this.mark(nodes, -1, [line]);
        if (nodes.length) this.reveal(nodes[0]);
    }

    chooseAnswer({ nodes, line, cut }) {
        const all = cut === null || cut === undefined ? nodes : [...nodes, this.model.count + cut];
        this.mark(all, all.length ? all[all.length - 1] : -1, line < 0 ? [] : [line]);
        if (all.length) this.reveal(all[all.length - 1]);
    }

    mark(nodes, selected, lines, group = -1) {
        this.selected = selected;
        this.selectedGroup = group;
        this.picture.mark(nodes, selected);
        this.page.panels.markLines(lines);
        this.page.panels.showNode();
    }

    /** Bring a node into sight, or the closed group that it is in. */
    reveal(node) {
        const box = this.scene.boxOf[node];
        const shown = this.scene.copies.includes(node) && !this.scene.boxes.includes(box)
            ? this.scene.firstCopy + this.scene.copies.indexOf(node) : box;
        if (!this.picture.isInSight(shown) || this.picture.far) this.picture.centre(shown);
    }

    search(text) {
        const found = this.model.search(text);
        this.mark(found, found.length ? found[0] : -1, []);
        if (found.length) this.reveal(found[0]);
        this.found = found;
        this.foundAt = 0;
        return found.length;
    }

    nextFound() {
        if (!this.found || !this.found.length) return;
        this.foundAt = (this.foundAt + 1) % this.found.length;
        this.picture.selected = this.selected = this.found[this.foundAt];
        this.reveal(this.selected);
        this.picture.schedule();
        this.page.panels.showNode();
    }

    // ------------------------------------------------------------------------------------------------------------- running

    /** The player is at another moment. */
    moved(follow) {
        const start = performance.now();
        const current = this.player.current();
        if (this.timeline.follow.checked && current >= 0 && this.scene && !this.picture.far) this.picture.pan(this.scene.boxOf[current]);
        this.picture.update();
        if (this.page.active === this) {
            this.page.panels.showRun();
            if (this.selected >= 0 && this.page.panels.opened === "node") this.page.panels.showNode();
        }
        this.page.timing.step = performance.now() - start;
        if (follow) this.page.keepStep(this);
    }
}
