package io.deepep.cuda;

import java.net.URL;

/**
 * A library that kernels call to reach GPUs of other nodes, running in this process. Its numbers of
 * PEs are for kernels alone: Java speaks of ranks.
 */
public interface NetworkLibrary {
    /**
     * Device code that calls the library, loaded onto this process's GPU and made part of it; the
     * same module for every caller. It stays loaded as long as the library runs.
     *
     * @param name of the code; the same name is the same module
     * @param code where it lies, as a class of its jar finds it; null if it is not there
     * @throws io.deepep.error.DeepEpUnavailableException if the build has no such code
     */
    CudaModule load(String name, URL code);

    /** The library's number of the rank on node 0 that has this rank's place in its node. */
    int firstPe();

    /** What is added to that from node to node. */
    int peStride();

    /**
     * The library's number of any rank, where all ranks are in one world.
     *
     * @throws IllegalArgumentException if the rank is of another rail's world
     */
    int peOf(int rank);

    /** Whether calls of normal mode may mask ranks. Then all ranks are in one world. */
    boolean canMask();

    /** In stream order: all that kernels of this process sent has arrived. Returns at once. */
    void quiet(CudaStream stream);
}
