/**
 * Queue pairs of a network card that kernels drive themselves (IBGDA): what kernels need to know of
 * them, and what they report. See {@code deepep/network_ibgda.cuh} and docs/ibgda.md.
 */
package io.deepep.cuda.ibgda;
