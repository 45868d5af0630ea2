package io.deepep.cuda;

import static io.deepep.cuda.CheckContext.expect;
import static io.deepep.cuda.CheckContext.expectThrows;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.IpcHandle;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import io.deepep.spi.posix.PosixFd;
import java.util.HexFormat;

/** The other process of {@link ProcessChecks}. */
public final class ProcessChild {
    static final int NOT_HERE = 3;
    private static final int VALUE = 7;

    private ProcessChild() {}

    /** Exit status 0 if all went well, {@value #NOT_HERE} if the machine does not let it. */
    public static void main(String[] args) {
        CheckContext c = new CheckContext();
        switch (args[0]) {
            case "ipc" -> ipc(c, HexFormat.of().parseHex(args[1]));
            case "fd" -> descriptor(c, Long.parseLong(args[1]), Integer.parseInt(args[2]));
            case "lose" -> lose(c);
            default ->
                    throw new IllegalArgumentException(
                            "args[0]=" + args[0] + " is not one of ipc, fd, lose");
        }
        System.exit(0);
    }

    private static void ipc(CheckContext c, byte[] handle) {
        CudaMemory first = IpcHandle.fromBytes(handle).open(c.cuda);
        try (CudaMemory memory = IpcHandle.fromBytes(handle).open(c.cuda)) {
            expect(first.address() == memory.address(), "a context has it twice");
            first.close();
            c.addValue(c.stream, memory.address(), 4, VALUE);
            c.stream.synchronize();
        }
    }

    private static void descriptor(CheckContext c, long pid, int fd) {
        int own = 0;
        try {
            own = PosixFd.fetch(pid, fd);
        } catch (DeepEpUnavailableException e) {
            System.out.println(e.getMessage());
            System.exit(NOT_HERE);
        }
        try (VirtualMemory memory = VirtualMemory.importPosixFd(c.cuda, own, 16)) {
            PosixFd.close(own);
            c.addValue(c.stream, memory.address(), 4, VALUE);
            c.stream.synchronize();
        }
    }

    private static void lose(CheckContext c) {
        KernelParams params =
                KernelParams.arguments(c.arena, JAVA_LONG, JAVA_INT).setLong(0, 64).setInt(8, 1);
        CudaEvent event = CudaEvent.create(c.cuda);
        c.module.function("poke").launch(new LaunchConfig(c.arena, 1, 1), params, c.stream);
        c.stream.record(event);
        CallEvent following = new CallEvent(c.stream);
        following.followStream(true);
        following.record();
        expectThrows(
                NativeCallException.class, NativeCallException::isFatal, c.stream::synchronize);
        expectThrows(NativeCallException.class, NativeCallException::isFatal, event::synchronize);
        expect(event.isDone() && following.isDone(), "an event of a lost context never comes");
        expectThrows(
                NativeCallException.class,
                NativeCallException::isFatal,
                () -> CudaMemory.allocate(c.cuda, 16));
    }
}
