# SPDX-License-Identifier: Apache-2.0
# What the kernel asks of Python's own objects that Cython's declarations lack, or have with other types. All of it is
# in the limited API.

cdef extern from "Python.h":
    # Tells the search for garbage in cycles that an object is in none.
    void PyObject_GC_UnTrack(void *tracked)
