/**
 * What Java and kernels share: structs, tables of constants and the headers that are written from
 * them.
 */
package io.deepep.cuda.kernel;
