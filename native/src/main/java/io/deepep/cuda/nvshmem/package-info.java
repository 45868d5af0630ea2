/**
 * NVSHMEM, driven from Java: found on the machine, configured, started, its symmetric heap and
 * teams.
 *
 * <p>PE numbers exist in this package alone; {@link io.deepep.cuda.nvshmem.PeMap} converts them
 * from and to ranks.
 */
package io.deepep.cuda.nvshmem;
