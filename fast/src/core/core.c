/* The module: what the package sets up (configure), and what it then uses. */
#define IMPORTS_ARRAY
#include "recorded.h"

Core core;

static PyMethodDef dependencies_definition = {
    "compute_dependencies", (PyCFunction)(void (*)(void))compute_dependencies, METH_FASTCALL,
    "Count, for each node below `root`, the edges that lead to it; give the nodes back."};

/* configure(names): what OBJECTS lists, by name. Returns the method compute_dependencies of GraphTask. */
static PyObject *configure(PyObject *self, PyObject *names)
{
    (void)self;
#define OBJECT(name) \
    if (!(core.name = PyDict_GetItemString(names, #name))) \
        return PyErr_Format(PyExc_KeyError, "the compiled core needs " #name); \
    Py_INCREF(core.name);
    OBJECTS(OBJECT)
#undef OBJECT
    core.zero = PyLong_FromLong(0), core.one = PyLong_FromLong(1), core.two = PyLong_FromLong(2);
    core.f32 = PyArray_DescrFromType(NPY_FLOAT), core.f64 = PyArray_DescrFromType(NPY_DOUBLE);
    core.acquire = PyObject_GetAttrString(core.graph_lock, "acquire");
    core.release = PyObject_GetAttrString(core.graph_lock, "release");
    if (!core.zero || !core.one || !core.two || !core.acquire || !core.release || configure_slots()) {
        Py_CLEAR(core.Tensor); /* and so it is used by nobody */
        return NULL;
    }
    return PyDescr_NewMethod((PyTypeObject *)core.GraphTask, &dependencies_definition);
}

static PyObject *add_parameter(PyObject *self, PyObject *type)
{
    (void)self;
    core.Parameter = Py_NewRef(type);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"configure", configure, METH_O, "Tell the core the package's classes and functions."},
    {"define_operators", define_operators, METH_O, "Tell it what operators do."},
    {"make_operator", make_operator, METH_O, "A function that does the plain case of an operator, or gives None."},
    {"define_formulas", define_formulas, METH_O, "Tell it what nodes compute."},
    {"add_parameter", add_parameter, METH_O, "A class whose objects are in all operators as plain as Tensors."},
    {"know_recordings", know_recordings, METH_O, "Tell it the classes of captured steps."},
    {"record_with", record_with, METH_O, "Who records the steps of this thread from now on; None: nobody."},
    {"pass_at", (PyCFunction)(void (*)(void))pass_at, METH_FASTCALL, "Where the calls of a recorded pass come from."},
    {"are_plain_nodes", (PyCFunction)(void (*)(void))are_plain_nodes, METH_FASTCALL, "Do these nodes run no code of the user?"},
    {"address", address_of, METH_O, "Where the first element of an array lies."},
    {"living", living, METH_O, "Storages whose memory is still there."},
    {"is_same_world", (PyCFunction)(void (*)(void))is_same_world, METH_FASTCALL, "Is what a step has found as it was?"},
    {"holders", holders, METH_O, "How many recorded arrays it has made that are still there."},
    {"live", (PyCFunction)(void (*)(void))live_calls, METH_FASTCALL, "The calls of a recording that matter."},
    {"without_constants", (PyCFunction)(void (*)(void))without_constants, METH_FASTCALL, "Constants, and the other calls."},
    {"let_go", (PyCFunction)(void (*)(void))let_go_of, METH_FASTCALL, "Let go of the memory of a recording."},
    {"others", other_calls, METH_O, "The calls that are more than a ufunc with a new result."},
    {"place_small", (PyCFunction)(void (*)(void))place_small, METH_FASTCALL, "Memory for a program of small arrays."},
    {"steps", (PyCFunction)(void (*)(void))make_steps, METH_FASTCALL, "Calls as functions with their arguments."},
    {"run_pass", (PyCFunction)(void (*)(void))run_pass, METH_FASTCALL, "Run a backward pass."},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    import_array1(-1);
    PyObject *signs = PyType_FromSpec(&signs_spec);
    int failed = !signs || PyModule_AddObjectRef(module, "Signs", signs);
    Py_XDECREF(signs);
    return failed ? -1 : PyModule_AddIntConstant(module, "VERSION", 5); /* of what it is told and asked */
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_core", .m_doc = "The compiled core.", .m_methods = functions, .m_slots = slots,
};
PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
