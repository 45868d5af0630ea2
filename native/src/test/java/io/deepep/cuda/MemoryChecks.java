package io.deepep.cuda;

import static io.deepep.cuda.CheckContext.expect;
import static io.deepep.cuda.CheckContext.expectInts;
import static io.deepep.cuda.CheckContext.expectThrows;
import static io.deepep.cuda.CheckContext.ints;
import static io.deepep.cuda.CheckContext.write;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.Device;
import io.deepep.cuda.driver.CuError;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.IpcHandle;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;

/** Device, pinned and virtual memory, addresses, access between GPUs. */
final class MemoryChecks {
    private MemoryChecks() {}

    static void addTo(Map<String, CudaSmoke.Check> checks) {
        checks.put("device is described", MemoryChecks::device);
        checks.put("context follows the thread", MemoryChecks::contextOfThread);
        checks.put("device memory is copied, cleared, bounds checked", MemoryChecks::deviceMemory);
        checks.put("too much memory is refused, by name", MemoryChecks::outOfMemory);
        checks.put("addresses are recognised", MemoryChecks::pointers);
        checks.put("pinned and registered host memory is reached by kernels", MemoryChecks::pinned);
        checks.put("virtual memory", MemoryChecks::virtual);
        checks.put("peer access", MemoryChecks::peers);
    }

    private static void device(CheckContext c) {
        CudaDevice device = c.cuda.cudaDevice();
        expect(device.numSms() > 0 && device.computeMajor() >= 7, device);
        expect(device.uuid().length() == 32 && device.pciBusId().matches("[0-9A-Fa-f:.]+"), device);
        expect(
                device.memoryBytes() > c.cuda.freeMemoryBytes() && c.cuda.freeMemoryBytes() > 0,
                device);
        expectThrows(
                IllegalArgumentException.class,
                e -> e.getMessage().contains("is not in [0, " + CudaDriver.numDevices()),
                () -> CudaDevice.of(CudaDriver.numDevices()));
    }

    private static void contextOfThread(CheckContext c) throws InterruptedException {
        try (CudaMemory memory = CudaMemory.allocate(c.cuda, 16)) {
            write(memory, 1, 2, 3, 4);
            int[][] seen = new int[1][];
            Thread thread = Thread.ofPlatform().start(() -> seen[0] = ints(memory, 4));
            thread.join();
            expectInts(seen[0], 1, 2, 3, 4);
        }
    }

    private static void deviceMemory(CheckContext c) {
        CudaMemory memory = CudaMemory.allocate(c.cuda, 16);
        write(memory, 1, 2, 3, 4);
        expectInts(ints(memory, 4), 1, 2, 3, 4);
        memory.copyFrom(8, c.arena.allocateFrom(JAVA_INT, 9));
        expectInts(ints(memory, 4), 1, 2, 9, 4);
        memory.clear();
        expectInts(ints(memory, 4), 0, 0, 0, 0);
        expectThrows(
                IndexOutOfBoundsException.class,
                _ -> true,
                () -> memory.copyFrom(8, c.arena.allocate(16)));
        expectThrows(
                IllegalArgumentException.class, _ -> true, () -> CudaMemory.allocate(c.cuda, 0));
        memory.close();
        memory.close();
        expectThrows(IllegalStateException.class, _ -> true, memory::address);
    }

    private static void outOfMemory(CheckContext c) {
        expectThrows(
                DeepEpUnavailableException.class,
                e ->
                        e.reason().startsWith("cuda:0 has ")
                                && e.reason().contains(" bytes of memory left, not " + (1L << 50))
                                && e.getCause() instanceof NativeCallException refused
                                && refused.code() == CuError.OUT_OF_MEMORY
                                && !refused.isFatal(),
                () -> CudaMemory.allocate(c.cuda, 1L << 50));
        expectThrows(
                DeepEpUnavailableException.class,
                e -> e.reason().contains(" bytes of memory left, not " + (1L << 50)),
                () -> VirtualMemory.allocate(c.cuda, 1L << 50, VirtualMemory.Export.POSIX_FD));
        CudaMemory.allocate(c.cuda, 1024).close();
    }

    private static void pointers(CheckContext c) {
        try (CudaMemory memory = CudaMemory.allocate(c.cuda, 4096);
                PinnedMemory pinned = PinnedMemory.allocate(c.cuda, 4096)) {
            PointerInfo info = PointerInfo.of(memory.address() + 100).orElseThrow();
            expect(
                    info.equals(new PointerInfo(Device.cuda(0), memory.address(), 4096, true)),
                    info);
            PointerInfo host = PointerInfo.of(pinned.segment().address()).orElseThrow();
            expect(host.device().isHost(), host);
            expect(PointerInfo.of(c.arena.allocate(64).address()).isEmpty(), "ordinary memory");
        }
    }

    private static void pinned(CheckContext c) {
        PinnedMemory pinned = PinnedMemory.allocate(c.cuda, 4096);
        MemorySegment segment = pinned.segment();
        segment.set(JAVA_INT, 4, 40);
        c.addValue(c.stream, pinned.deviceAddress(), 4, 2);
        c.stream.synchronize();
        expectInts(segment.asSlice(0, 16).toArray(JAVA_INT), 2, 42, 2, 2);
        pinned.close();
        expectThrows(IllegalStateException.class, _ -> true, () -> segment.get(JAVA_INT, 0));
    }

    private static void virtual(CheckContext c) {
        try (VirtualMemory memory =
                VirtualMemory.allocate(c.cuda, 3L << 20, VirtualMemory.Export.NONE)) {
            memory.clear();
            long end = memory.address() + memory.numBytes() - 16;
            c.addValue(c.stream, end, 4, 5);
            c.stream.synchronize();
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment host = arena.allocate(JAVA_INT, 4);
                memory.copyTo(memory.numBytes() - 16, host);
                expectInts(host.toArray(JAVA_INT), 5, 5, 5, 5);
            }
            expectThrows(IllegalStateException.class, _ -> true, memory::exportPosixFd);
            expectThrows(IllegalArgumentException.class, _ -> true, () -> IpcHandle.of(memory));
        }
    }

    private static void peers(CheckContext c) {
        if (CudaDriver.numDevices() < 2) {
            throw new CheckContext.NotHereException("one GPU");
        }
        try (CudaContext other = CudaContext.retain(CudaDevice.of(1));
                CudaMemory theirs = CudaMemory.allocate(other, 16);
                VirtualMemory virtual =
                        VirtualMemory.allocate(other, 16, VirtualMemory.Export.NONE)) {
            theirs.clear();
            virtual.clear();
            PeerAccess.enable(c.cuda, other);
            PeerAccess.enable(c.cuda, other);
            virtual.allowAccess(c.cuda);
            virtual.allowAccess(c.cuda); // for another rank there
            c.addValue(c.stream, theirs.address(), 4, 3);
            c.addValue(c.stream, virtual.address(), 4, 4);
            c.stream.synchronize();
            expectInts(ints(theirs, 4), 3, 3, 3, 3);
            expectInts(ints(virtual, 4), 4, 4, 4, 4);
            expect(
                    PointerInfo.of(theirs.address()).orElseThrow().device().index() == 1,
                    "device of peer memory");
        }
    }
}
