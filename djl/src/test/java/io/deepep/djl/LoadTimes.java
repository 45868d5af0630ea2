package io.deepep.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDManager;
import com.google.gson.JsonObject;
import io.deepep.DType;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;

/**
 * Times how a file of matrices comes into the memory of the first GPU, beside a plain read of the
 * file. A program, run from the bundle; with {@code -Ddeepep.cufile=true} by cuFile.
 *
 * <pre>{@code java ... io.deepep.djl.LoadTimes FOLDER GIGABYTES}</pre>
 */
final class LoadTimes {
    private static final int ROWS = 4096;
    private static final int COLUMNS = 8192;
    private static final long MATRIX_BYTES = 2L * ROWS * COLUMNS;

    private LoadTimes() {}

    /** Runs the program. */
    public static void main(String[] args) throws IOException {
        Path file = Path.of(args[0]).resolve("times.safetensors");
        int numMatrices = (int) (Long.parseLong(args[1]) * 1_000_000_000 / MATRIX_BYTES);
        Device device = TorchDevices.ofRank(0);
        try {
            write(file, numMatrices);
            double bytes = (double) numMatrices * MATRIX_BYTES;
            for (int i = 0; i < 2; i++) {
                System.out.printf("plain read: %.1f GB/s%n", bytes / nanos(() -> read(file)));
                System.out.printf(
                        "mapped, by libtorch: %.1f GB/s%n",
                        bytes / nanos(() -> load(file, numMatrices, device, false)));
                System.out.printf(
                        "by %s: %.1f GB/s%n",
                        Boolean.getBoolean("deepep.cufile") ? "cuFile" : "pinned staging",
                        bytes / nanos(() -> load(file, numMatrices, device, true)));
            }
        } finally {
            Files.deleteIfExists(file);
        }
    }

    private static void write(Path file, int numMatrices) throws IOException {
        JsonObject entries = new JsonObject();
        long[] shape = {ROWS, COLUMNS};
        for (int i = 0; i < numMatrices; i++) {
            entries.add(
                    "m" + i,
                    SafetensorsWriter.entry("BF16", shape, i * MATRIX_BYTES, MATRIX_BYTES));
        }
        byte[] matrix = new byte[(int) MATRIX_BYTES];
        new SplittableRandom(0).nextBytes(matrix); // zeros might not reach the disk
        try (OutputStream out = Files.newOutputStream(file)) {
            out.write(SafetensorsWriter.header(entries).array());
            for (int i = 0; i < numMatrices; i++) {
                out.write(matrix);
            }
        }
    }

    private static void read(Path file) throws IOException {
        ByteBuffer piece = ByteBuffer.allocateDirect(32 << 20);
        try (FileChannel channel = FileChannel.open(file)) {
            while (channel.read(piece.clear()) > 0) {
                // Only to have it read.
            }
        }
    }

    private static void load(Path file, int numMatrices, Device device, boolean staged)
            throws IOException {
        try (NDManager manager = NDManager.newBaseManager(device, "PyTorch");
                NDManager onCpu = NDManager.newBaseManager(Device.cpu(), "PyTorch");
                Safetensors tensors = Safetensors.open(file);
                Weights weights = Weights.of(tensors, manager, DType.BF16)) {
            for (int i = 0; i < numMatrices; i++) {
                try (var matrix = TorchTensors.empty(manager, DType.BF16, ROWS, COLUMNS)) {
                    if (staged) {
                        weights.load("m" + i, matrix);
                    } else {
                        TorchTensors.cast(tensors.view(onCpu, "m" + i), matrix);
                    }
                }
            }
        }
    }

    private interface Work {
        void run() throws IOException;
    }

    private static double nanos(Work work) throws IOException {
        long start = System.nanoTime();
        work.run();
        return System.nanoTime() - start;
    }
}
