# The fewest decimal digits that give a double again, by the interpreter's own dtoa (Python C API: Conversion).

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char format, int precision, int flags, int* kind)
    void PyMem_Free(void* block)
