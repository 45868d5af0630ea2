package io.deepep.buffer.memory;

import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.NetworkLibrary;
import io.deepep.cuda.nvshmem.NvshmemInstallation;
import io.deepep.cuda.nvshmem.NvshmemOptions;
import io.deepep.cuda.nvshmem.NvshmemUserSettings;
import io.deepep.cuda.nvshmem.NvshmemWorld;
import io.deepep.cuda.nvshmem.PeMap;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Layout;
import io.deepep.spi.Meeting;

/**
 * Symmetric memory of ranks that are PEs of one NVSHMEM world, started as a buffer starts it. Used
 * to measure the network itself.
 *
 * @param address address of this rank's memory, which is not zeroed
 * @param library the library that kernels of this rank call
 * @param release frees the memory, without waiting for other ranks
 */
public record NvshmemHeap(long address, NetworkLibrary library, Runnable release)
        implements AutoCloseable {
    /**
     * Starts NVSHMEM unless it is already started in this process, and allocates {@code numBytes}.
     * Collective; needs one process per rank.
     *
     * @param queues the queue pairs that the kernels need
     * @throws DeepEpUnavailableException on every rank, if NVSHMEM or something that the transport
     *     needs is missing on any rank
     */
    public static NvshmemHeap open(
            HeapRanks ranks,
            CudaContext context,
            Network.Nvshmem network,
            NvshmemQueues queues,
            long numBytes) {
        String gpu = context.cudaDevice().pciBusId();
        NvshmemOptions[] settings = new NvshmemOptions[1];
        new Meeting(
                        ranks.communicator(),
                        ranks.timeout(),
                        "NVSHMEM cannot be used",
                        "check the machine with deepep doctor")
                .together(
                        () -> {
                            settings[0] =
                                    NvshmemSettings.of(
                                            ranks.communicator(),
                                            network,
                                            queues,
                                            gpu,
                                            HostTopology.read(HostTopology.SYSFS),
                                            NvshmemUserSettings.ofProcess());
                            return installation().toString();
                        });
        EpTopology topology = ranks.topology();
        PeMap peMap = new PeMap(topology, PeMap.World.GLOBAL);
        NvshmemWorld world =
                NvshmemWorld.join(
                        installation(),
                        settings[0],
                        peMap,
                        context,
                        ranks.communicator(),
                        ranks.timeout());
        int allocation =
                world.allocate(numBytes, Layout.LINE_BYTES, ranks.communicator(), ranks.timeout());
        return new NvshmemHeap(
                world.address(allocation),
                new NvshmemNetwork(world, peMap, context, false),
                () -> world.release(allocation));
    }

    /** The one to use. */
    static NvshmemInstallation installation() {
        return NvshmemInstallation.find()
                .orElseThrow(
                        () ->
                                new DeepEpUnavailableException(
                                        "NVSHMEM was not found", NvshmemInstallation.CURE));
    }

    @Override
    public void close() {
        release.run();
    }
}
