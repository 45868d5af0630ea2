package io.deepep.normal.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelParams;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.cuda.kernels.NormalStructs;
import io.deepep.spi.Region;
import io.deepep.testkit.conformance.RequiredBackends;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Kernels find regions of a heap where Java has laid them out. */
class NormalAddressesTest {
    private static final int NUM_RANKS = 6;
    private static final int MAX_ADDRESSES = 1024;
    private static final String FATBIN = "/io/deepep/normal/address_checks.fatbin";

    @Test
    void kernelsFindWhatJavaLaidOut() {
        requireCuda();
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        EpTopology topology = new EpTopology(2, NUM_RANKS, NUM_RANKS);
        NormalNvlLayout layout = NormalNvlLayout.of(NormalLimits.of(50, 200, 5, 42), topology);
        List<Long> heaps =
                LongStream.range(0, NUM_RANKS).mapToObj(r -> (r + 1) * (1L << 40)).toList();
        long state = 1L << 50;
        assertThat(askGpu(context, layout, heaps, state)).isEqualTo(expected(layout, heaps, state));
    }

    static void requireCuda() {
        boolean built = NormalAddressesTest.class.getResource(FATBIN) != null;
        String missing = built ? null : FATBIN + " is missing: built without nvcc";
        RequiredBackends.assumeCuda(
                CudaDriver.unavailabilityReason().or(() -> Optional.ofNullable(missing)));
    }

    private static List<Long> expected(NormalNvlLayout layout, List<Long> heaps, long state) {
        List<Long> addresses = new ArrayList<>();
        for (long heap : heaps) {
            for (int parity = 0; parity < 2; parity++) {
                for (int source = 0; source < NUM_RANKS; source++) {
                    addresses.add(heap + layout.headers().at(parity, source));
                }
            }
            for (Region flags : List.of(layout.metaFlags(), layout.doneFlags())) {
                for (int source = 0; source < NUM_RANKS; source++) {
                    addresses.add(heap + flags.at(source));
                }
            }
            for (Region rows :
                    List.of(layout.recvRows(), layout.recvTopk(), layout.recvWeights())) {
                addresses.add(heap + rows.offset());
            }
        }
        long counts = NormalStructs.NARROW.localState.offset("block_counts");
        addresses.add(state + counts + 4L * (NormalStructs.NARROW.maxRanks + 2));
        return addresses;
    }

    private static List<Long> askGpu(
            CudaContext context, NormalNvlLayout layout, List<Long> heaps, long state) {
        try (Arena arena = Arena.ofConfined();
                CudaModule module =
                        CudaModule.loadResource(
                                context, FATBIN, NormalAddressesTest.class.getResource(FATBIN));
                CudaStream stream = CudaStream.create(context);
                PinnedMemory out = PinnedMemory.allocate(context, 8L * MAX_ADDRESSES)) {
            NormalStructs.HEADER.requireSame(module);
            KernelStruct struct = NormalStructs.NARROW.dispatch;
            KernelParams memory =
                    KernelParams.arguments(
                            arena,
                            MemoryLayout.sequenceLayout(struct.numBytes() / 8, JAVA_LONG),
                            JAVA_LONG);
            memory.setLong(memory.offset(1), out.deviceAddress());
            KernelStruct.Params group = new KernelStruct.Params(NormalStructs.NARROW.group, memory);
            CudaNormalState.setLayout(group, layout, heaps);
            group.set("state", state);
            CudaDispatch.setLayout(new KernelStruct.Params(struct, memory), layout);
            module.function("deepep_normal_addresses")
                    .launch(new LaunchConfig(arena, 1, 1), memory, stream);
            stream.synchronize();
            List<Long> addresses = new ArrayList<>();
            for (int i = 0; i < MAX_ADDRESSES && addressAt(out, i) != 0; i++) {
                addresses.add(addressAt(out, i));
            }
            return addresses;
        }
    }

    private static long addressAt(PinnedMemory out, int i) {
        return out.segment().getAtIndex(JAVA_LONG, i);
    }
}
