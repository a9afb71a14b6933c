"use strict";
// Where boxes go. Runs in a worker (main.js starts one from the text of this script), or where there is none, in the page.
//
// A scene is a list of containers, innermost first; each has items (boxes, some of which are containers that were laid
// out before) and edges among them, from above to below. A container of moderate size is laid out by dagre; one that
// is larger, or so deep that its long edges would be cut into thousands of pieces, by `layers` below, in linear time.

const GAP = { across: 22, down: 34, padding: 14, title: 22 };
const MOST_ITEMS = 220;
const MOST_PIECES = 900;

/** Lay out one container: items are indices into width and height, in the order of time; edges are pairs of them. */
function layoutContainer(items, edges, width, height, layoutLibrary) {
    const level = levels(items, edges);
    let pieces = 0;
    for (const [from, to] of edges) pieces += Math.abs(level.get(to) - level.get(from));
    if (items.length <= MOST_ITEMS && pieces <= MOST_PIECES && layoutLibrary) {
        try {
            return byLibrary(items, edges, width, height, layoutLibrary);
        } catch (error) {
            console.warn("the graph is laid out in layers:", error);
        }
    }
    return layers(items, edges, width, height, level);
}

function byLibrary(items, edges, width, height, library) {
    const graph = new library.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: "TB", nodesep: GAP.across, ranksep: GAP.down, ranker: "network-simplex" });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const item of items) graph.setNode(String(item), { width: width[item], height: height[item] });
    edges.forEach(([from, to], number) => graph.setEdge(String(from), String(to), {}, String(number)));
    library.layout(graph);
    const places = new Map();
    let right = 0, bottom = 0;
    for (const item of items) {
        const { x, y } = graph.node(String(item));
        places.set(item, [x - width[item] / 2, y - height[item] / 2]);
        right = Math.max(right, x + width[item] / 2);
        bottom = Math.max(bottom, y + height[item] / 2);
    }
    const routes = edges.map(([from, to], number) =>
        graph.edge(String(from), String(to), String(number)).points.map((p) => [p.x, p.y]));
    for (const route of routes) for (const point of route) right = Math.max(right, point[0]);
    return { places, routes, width: right, height: bottom };
}

/** How far down each item is: below everything that leads to it, where that comes before it in time. */
function levels(items, edges) {
    const order = new Map(items.map((item, position) => [item, position]));
    const level = new Map(items.map((item) => [item, 0]));
    const below = new Map(), above = new Map();
    for (const [from, to] of edges) {
        if (order.get(from) >= order.get(to)) continue; // goes back in time: between groups that were folded up
        if (!below.has(from)) below.set(from, []);
        below.get(from).push(to);
        above.set(to, (above.get(to) || 0) + 1);
    }
    for (const item of items) {
        const next = level.get(item) + 1;
        for (const to of below.get(item) || []) if (level.get(to) < next) level.set(to, next);
    }
    // What nothing leads to stands right above what it leads to.
    for (const item of items) {
        if (!above.get(item) && below.has(item)) {
            level.set(item, Math.max(0, Math.min(...below.get(item).map((to) => level.get(to))) - 1));
        }
    }
    return level;
}

/** Rows by level, each put under what leads to it, folded into columns like text: linear in nodes and edges. */
function layers(items, edges, width, height, level) {
    const above = new Map();
    for (const [from, to] of edges) {
        if (!above.has(to)) above.set(to, []);
        above.get(to).push(from);
    }
    const byLevel = [];
    for (const item of items) (byLevel[level.get(item)] ||= []).push(item);
    const longest = Math.ceil(2 * Math.sqrt(items.length));
    const rows = [];
    for (const all of byLevel) {
        if (!all) continue;
        for (let start = 0; start < all.length; start += longest) rows.push(all.slice(start, start + longest));
    }
    const middle = new Map();
    let widest = 0;
    for (const row of rows) {
        const wanted = new Map();
        row.forEach((item, position) => {
            const sources = (above.get(item) || []).filter((source) => middle.has(source)).slice(0, 8);
            const sum = sources.reduce((total, source) => total + middle.get(source), 0);
            wanted.set(item, sources.length ? sum / sources.length : position * 100);
        });
        row.sort((a, b) => wanted.get(a) - wanted.get(b));
        let edge = -Infinity, shift = 0;
        for (const item of row) {
            const x = Math.max(edge, wanted.get(item) - width[item] / 2);
            middle.set(item, x + width[item] / 2);
            edge = x + width[item] + GAP.across;
            shift += x + width[item] / 2 - wanted.get(item);
        }
        shift /= row.length;
        let left = Infinity;
        for (const item of row) {
            middle.set(item, middle.get(item) - shift);
            left = Math.min(left, middle.get(item) - width[item] / 2);
        }
        if (left < 0) for (const item of row) middle.set(item, middle.get(item) - left);
        for (const item of row) widest = Math.max(widest, middle.get(item) + width[item] / 2);
    }
    const heights = rows.map((row) => Math.max(...row.map((item) => height[item])) + GAP.down);
    const total = heights.reduce((sum, one) => sum + one, 0);
    const columns = Math.max(1, Math.round(Math.sqrt(total / (widest * 0.62))));
    const places = new Map();
    let column = 0, y = 0, bottom = 0;
    rows.forEach((row, number) => {
        if (y > total / columns && column < columns - 1) [column, y] = [column + 1, 0];
        for (const item of row) places.set(item, [column * (widest + 3 * GAP.across) + middle.get(item) - width[item] / 2, y]);
        y += heights[number];
        bottom = Math.max(bottom, y);
    });
    return { places, routes: null, width: (column + 1) * (widest + 3 * GAP.across), height: bottom };
}

/** Lay out a scene; places are absolute, in arrays by box. The last container is the whole picture. */
function layoutScene({ containers, width, height }, library) {
    const x = new Float32Array(width.length), y = new Float32Array(width.length);
    const laid = containers.map(({ box, items, edges }) => {
        const result = layoutContainer(items, edges, width, height, library);
        if (box !== null) {
            width[box] = Math.max(width[box], result.width + 2 * GAP.padding);
            height[box] = result.height + 2 * GAP.padding + GAP.title;
        }
        return result;
    });
    const routes = [];
    for (let number = containers.length - 1; number >= 0; number--) {
        const { box, edges } = containers[number], { places, routes: points, width: inner } = laid[number];
        const left = box === null ? 0 : x[box] + (width[box] - inner) / 2;
        const top = box === null ? 0 : y[box] + GAP.padding + GAP.title;
        for (const [item, place] of places) [x[item], y[item]] = [left + place[0], top + place[1]];
        if (points) edges.forEach(([from, to], i) => routes.push([from, to, points[i].map(([px, py]) => [left + px, top + py])]));
    }
    const whole = laid[laid.length - 1];
    return { x, y, width, height, routes, size: [whole.width, whole.height] };
}

if (typeof WorkerGlobalScope !== "undefined") {
    onmessage = ({ data }) => postMessage({ number: data.number, result: layoutScene(data.scene, libraries) });
}
