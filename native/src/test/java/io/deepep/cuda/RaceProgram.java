package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.memory.CudaMemory;
import io.deepep.error.NativeCallException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;

/** Launches the two halves of a kernel of {@code race_checks.cu}, and says how they ended. */
public final class RaceProgram {
    private static final int THREADS = 64;

    private final byte[] image;
    private final String kernel;
    private final CudaMemory words;

    private RaceProgram(byte[] image, String kernel, CudaMemory words) {
        this.image = image;
        this.kernel = kernel;
        this.words = words;
    }

    /** Arguments: the module, the kernel, the GPU of the second half. */
    public static void main(String[] args) throws IOException {
        CudaContext first = CudaContext.retain(CudaDevice.of(0));
        CudaContext second = CudaContext.retain(CudaDevice.of(Integer.parseInt(args[2])));
        CudaMemory words = CudaMemory.allocate(first, 256 * Long.BYTES);
        words.clear();
        var program = new RaceProgram(Files.readAllBytes(Path.of(args[0])), args[1], words);
        CudaStream stream = CudaStream.create(first);
        boolean overlaps = args[1].endsWith("previous");
        CudaStream other = overlaps ? stream : CudaStream.create(second);
        program.launch(first, stream, 0, false);
        program.launch(second, other, 1, overlaps);
        try {
            stream.synchronize();
            other.synchronize();
            System.out.println("ended");
        } catch (NativeCallException failed) {
            System.out.println("failed");
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // a context that failed cannot be closed
    }

    private void launch(CudaContext context, CudaStream stream, int half, boolean overlaps) {
        context.makeCurrent();
        Arena arena = Arena.global();
        CudaFunction function = CudaModule.load(context, "race_checks", image).function(kernel);
        var launch = new LaunchConfig(arena, 1, THREADS).sharedBytes((THREADS + 1) * Long.BYTES);
        function.launch(
                overlaps ? launch.overlapsPrevious() : launch,
                KernelParams.arguments(arena, JAVA_LONG, JAVA_INT)
                        .setLong(0, words.address())
                        .setInt(Long.BYTES, half),
                stream);
    }
}
