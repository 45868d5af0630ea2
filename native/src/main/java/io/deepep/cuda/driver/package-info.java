/** Calls of the CUDA driver: symbols, arguments, structs, errors. */
package io.deepep.cuda.driver;
