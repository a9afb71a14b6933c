// The parts of the libraries that the page uses, under one global name.
export { layout, graphlib } from "@dagrejs/dagre";
export { select } from "d3-selection";
export { curveBasis, line } from "d3-shape";
export { zoom, zoomIdentity } from "d3-zoom";
