package io.deepep.cuda;

import static io.deepep.cuda.CheckContext.expect;
import static io.deepep.cuda.CheckContext.expectInts;
import static io.deepep.cuda.CheckContext.expectThrows;
import static io.deepep.cuda.CheckContext.ints;
import static io.deepep.cuda.CheckContext.write;

import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.IpcHandle;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.posix.PosixFd;
import io.deepep.testkit.Programs;
import java.io.IOException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/**
 * Memory between processes, and what is better tried in a process of its own; {@link ProcessChild}
 * is it.
 */
final class ProcessChecks {
    private ProcessChecks() {}

    static void addTo(Map<String, CudaSmoke.Check> checks) {
        checks.put("CUDA IPC between two processes", ProcessChecks::ipc);
        checks.put("virtual memory by descriptor between two processes", ProcessChecks::descriptor);
        checks.put("a lost context is recognised", ProcessChecks::lostContext);
    }

    private static void ipc(CheckContext c) throws IOException, InterruptedException {
        try (CudaMemory memory = CudaMemory.allocate(c.cuda, 4096)) {
            memory.clear();
            IpcHandle whole = IpcHandle.of(memory);
            expectThrows(
                    IllegalArgumentException.class,
                    e -> e.getMessage().contains("PeerAccess"),
                    () -> whole.open(c.cuda));
            // A part, so that the offset counts.
            IpcHandle part = IpcHandle.of(c.cuda, memory.address() + 256, 16);
            c.addValue(c.stream, memory.address() + 256, 4, 30);
            c.stream.synchronize();
            run("ipc", HexFormat.of().formatHex(part.toBytes()));
            int[] words = ints(memory, 70);
            expectInts(Arrays.copyOfRange(words, 62, 70), 0, 0, 37, 37, 37, 37, 0, 0);
        }
    }

    private static void descriptor(CheckContext c) throws IOException, InterruptedException {
        VirtualMemory allocated;
        try {
            allocated = VirtualMemory.allocate(c.cuda, 16, VirtualMemory.Export.POSIX_FD);
        } catch (DeepEpUnavailableException e) {
            throw new CheckContext.NotHereException(e.getMessage());
        }
        try (VirtualMemory memory = allocated) {
            write(memory, 1, 2, 3, 4);
            PosixFd.allowFetching();
            int fd = memory.exportPosixFd();
            try {
                run("fd", Long.toString(ProcessHandle.current().pid()), Integer.toString(fd));
            } finally {
                PosixFd.close(fd);
            }
            expectInts(ints(memory, 4), 8, 9, 10, 11);
        }
    }

    private static void lostContext(CheckContext c) throws IOException, InterruptedException {
        run("lose");
        c.stream.synchronize();
    }

    private static void run(String... args) throws IOException, InterruptedException {
        Programs.Ended child = Programs.run(Programs.java(ProcessChild.class, List.of(), args));
        if (child.status() == ProcessChild.NOT_HERE) {
            throw new CheckContext.NotHereException(child.output().strip());
        }
        expect(child.status() == 0, "child's status", child.status(), child.output());
    }
}
