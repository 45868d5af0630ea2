package io.deepep.bench.cuda;

import io.deepep.Network;
import io.deepep.bench.cuda.PutLoad.Pattern;
import io.deepep.buffer.memory.CudaHeaps.Reach;
import io.deepep.buffer.memory.NvshmemHeap;
import io.deepep.buffer.memory.NvshmemQueues;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Undo;

/** A rank's memory that the others put to, and how its kernels reach theirs. */
interface PutHeap extends AutoCloseable {
    /** Cells and flags, what the network keeps of its own, and the source. */
    long address();

    /** Where the source begins. */
    long source();

    /** Says in a kernel's parameters how to reach the others. */
    void setNetwork(Params network);

    /** Loads a kernel. */
    CudaFunction load(Pattern pattern);

    @Override
    void close();

    /**
     * Allocates it; collective.
     *
     * @param sms blocks that send
     * @throws io.deepep.error.DeepEpUnavailableException if ranks cannot reach one another so
     */
    static PutHeap open(
            Network network, HeapRanks ranks, CudaStream stream, int sms, PutMemory layout) {
        return network instanceof Network.Nvshmem nvshmem
                ? OverNvshmem.open(nvshmem, ranks, stream, sms, layout)
                : OverPeers.open(ranks, stream, layout);
    }

    /** Memory that kernels of the other ranks write to. */
    record OverPeers(
            PeerMemory.RankPart memory, PutMemory layout, CudaContext context, Undo modules)
            implements PutHeap {
        static OverPeers open(HeapRanks ranks, CudaStream stream, PutMemory layout) {
            long bytes = layout.numBytes() + layout.cellBytes();
            return new OverPeers(
                    PeerMemory.RankPart.open(ranks, stream, bytes, Reach.GROUP),
                    layout,
                    stream.context(),
                    new Undo());
        }

        @Override
        public long address() {
            return memory.address();
        }

        @Override
        public long source() {
            return address() + layout.numBytes();
        }

        @Override
        public void setNetwork(Params network) {
            network.set("peers", memory.table());
        }

        @Override
        public CudaFunction load(Pattern pattern) {
            return modules.made(BenchModule.load(context, pattern.kernel()), BenchModule::close)
                    .function();
        }

        @Override
        public void close() {
            modules.close();
            memory.close();
        }
    }

    /** NVSHMEM's symmetric heap, with an outbox: the puts of a rank's own cells and flags. */
    record OverNvshmem(NvshmemHeap heap, PutMemory layout) implements PutHeap {
        private static final String KERNELS = "nvshmem/bench_put_nvshmem.fatbin";

        /** Room for what a block posts before its first completions are there. */
        private static final int QP_DEPTH = 4096;

        static OverNvshmem open(
                Network.Nvshmem network,
                HeapRanks ranks,
                CudaStream stream,
                int sms,
                PutMemory layout) {
            return new OverNvshmem(
                    NvshmemHeap.open(
                            ranks,
                            stream.context(),
                            network,
                            new NvshmemQueues(sms, QP_DEPTH),
                            2 * layout.numBytes() + layout.cellBytes()),
                    layout);
        }

        @Override
        public long address() {
            return heap.address();
        }

        @Override
        public long source() {
            return address() + 2 * layout.numBytes();
        }

        @Override
        public void setNetwork(Params network) {
            network.set("outbox", layout.numBytes())
                    .setInt("first_pe", heap.library().firstPe())
                    .setInt("pe_stride", heap.library().peStride());
        }

        @Override
        public CudaFunction load(Pattern pattern) {
            CudaModule module = heap.library().load(KERNELS, PutHeap.class.getResource(KERNELS));
            BenchStructs.HEADER.requireSame(module);
            return module.function("deepep_bench_" + pattern.kernel());
        }

        @Override
        public void close() {
            heap.close();
        }
    }
}
