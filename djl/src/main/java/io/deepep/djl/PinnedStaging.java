package io.deepep.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.djl.script.Operators;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Brings mapped files into GPU memory through two pieces of pinned memory: while the GPU reads one,
 * the host fills the other. From memory that is not pinned the driver would copy one after the
 * other. For one thread.
 */
final class PinnedStaging implements AutoCloseable {
    private static final long PIECE_BYTES = 32L << 20;

    private final Device device;

    /** Owns the pieces, which are freed when it is closed. */
    private final NDManager onCpu = NDManager.newBaseManager(Device.cpu(), "PyTorch");

    private final Tensor[] pieces = new Tensor[2];
    private final Event[] read = new Event[pieces.length];
    private int next;

    PinnedStaging(Device device) {
        this.device = device;
        try {
            Arrays.setAll(pieces, _ -> pinned());
        } catch (Throwable failure) {
            onCpu.close();
            throw failure;
        }
    }

    /** Of a type of one byte: bytes are copied as they are. */
    private Tensor pinned() {
        try (NDArray pageable = TorchTensors.empty(onCpu, DType.FP8_E4M3, PIECE_BYTES)) {
            return TorchTensors.borrow(Operators.pinned(pageable));
        }
    }

    /**
     * Copies bytes; enqueued on libtorch's current stream when it returns.
     *
     * @param to contiguous, of as many bytes, on the GPU
     */
    void copy(MemorySegment from, Tensor to) {
        for (long at = 0; at < from.byteSize(); at += PIECE_BYTES) {
            long numBytes = Math.min(PIECE_BYTES, from.byteSize() - at);
            if (read[next] != null) {
                read[next].synchronize();
            }
            MemorySegment piece = pieces[next].segment();
            MemorySegment.copy(from, at, piece, 0, numBytes);
            Tensor target =
                    Tensor.onDevice(
                            to.device(),
                            to.address() + at,
                            numBytes,
                            DType.FP8_E4M3,
                            new long[] {numBytes},
                            new long[] {1},
                            to);
            try (NDArray bytes = TorchTensors.arrayOf(onCpu, target);
                    NDArray filled =
                            TorchTensors.arrayOf(onCpu, pieces[next].slice(0, 0, numBytes))) {
                LibTorch.copyNonBlocking(
                        TorchTensors.handleOf(bytes), TorchTensors.handleOf(filled));
            }
            read[next] = Buffer.capture(TorchStreams.current(device));
            next = (next + 1) % pieces.length;
        }
    }

    /** Waits for the last copies. */
    @Override
    public void close() {
        for (Event event : read) {
            if (event != null) {
                event.synchronize();
            }
        }
        onCpu.close();
    }
}
