package io.deepep.buffer.memory;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.NetworkLibrary;
import io.deepep.cuda.nvshmem.NvshmemWorld;
import io.deepep.cuda.nvshmem.PeMap;
import java.net.URL;

/**
 * NVSHMEM as the kernels of one buffer see it.
 *
 * @param canMask whether normal mode may mask ranks
 */
record NvshmemNetwork(NvshmemWorld world, PeMap peMap, CudaContext context, boolean canMask)
        implements NetworkLibrary {
    @Override
    public CudaModule load(String name, URL code) {
        return world.load(name, () -> CudaModule.loadResource(context, name, code));
    }

    @Override
    public int firstPe() {
        return peOfNode(0);
    }

    @Override
    public int peStride() {
        return peOfNode(1) - peOfNode(0);
    }

    @Override
    public int peOf(int rank) {
        return peMap.peOf(rank);
    }

    @Override
    public void quiet(CudaStream stream) {
        world.quiet(stream);
    }

    private int peOfNode(int node) {
        return peOf(peMap.topology().rankOf(node, peMap.topology().nvlRank()));
    }
}
