/** The binaries of normal mode's kernels, and the structs and numbers they share with Java. */
package io.deepep.normal.cuda.kernels;
