package io.deepep.cuda.ibgda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.kernel.KernelStruct.Params;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/** The device code compiled by g++: a block is a thread, a warp has one lane. */
final class HostNicDevice implements NicDevice {
    private static final Path SOURCE = Path.of("src/test/cuda-nic/on_host/nic_checks_on_host.cpp");

    private final Arena arena = Arena.ofShared();
    private final MethodHandle script;
    private final MethodHandle exchange;

    /** Loads the library; its memory lives as long as this. */
    HostNicDevice(Path library) {
        SymbolLookup symbols = SymbolLookup.libraryLookup(library, arena);
        script = function(symbols, "nic_script_on_host");
        exchange = function(symbols, "nic_exchange_on_host");
    }

    private static MethodHandle function(SymbolLookup symbols, String name) {
        return Linker.nativeLinker()
                .downcallHandle(
                        symbols.findOrThrow(name), FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT));
    }

    /** Compiles the device code; skips the test where there is no g++, or not the source. */
    static Path compile(Path folder) throws IOException, InterruptedException {
        Assumptions.assumeTrue(Files.exists(SOURCE), SOURCE + " is not here");
        Path library = folder.resolve("nic_checks_on_host.so");
        List<String> command = new ArrayList<>(List.of("g++", "-std=c++17", "-O1", "-shared"));
        command.addAll(List.of("-fPIC", "-Wall", "-Wextra", "-Werror"));
        for (String include :
                List.of(
                        "emulator/device",
                        "emulator/driver",
                        "test/cuda-nic",
                        "main/cuda/include")) {
            command.addAll(List.of("-I", "src/" + include));
        }
        command.addAll(List.of("-o", library.toString(), SOURCE.toString()));
        Process compiler;
        try {
            compiler = new ProcessBuilder(command).redirectErrorStream(true).start();
        } catch (IOException noCompiler) {
            Assumptions.abort("no g++: " + noCompiler.getMessage());
            throw noCompiler;
        }
        String output =
                new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (!compiler.waitFor(1, TimeUnit.MINUTES) || compiler.exitValue() != 0) {
            throw new AssertionError("g++: " + output);
        }
        return library;
    }

    @Override
    public MemorySegment allocate(long numBytes) {
        return arena.allocate(numBytes, 64);
    }

    @Override
    public long place(long numBytes, NicGroup.TableWriter writer) {
        MemorySegment image = allocate(numBytes);
        writer.write(image, image.address());
        return image.address();
    }

    @Override
    public void script(Params params) {
        call(script, params, 0);
    }

    @Override
    public void exchange(List<Params> byNode, int numChannels) {
        try (ExecutorService blocks = Executors.newCachedThreadPool()) {
            List<Future<?>> running = new ArrayList<>();
            for (Params params : byNode) {
                for (int channel = 0; channel < numChannels; channel++) {
                    int block = channel;
                    running.add(blocks.submit(() -> call(exchange, params, block)));
                }
            }
            for (Future<?> block : running) {
                block.get();
            }
        } catch (ExecutionException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void call(MethodHandle kernel, Params params, int block) {
        try {
            kernel.invokeExact(params.memory().segment(), block);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    @Override
    public int numLanes() {
        return 1;
    }

    @Override
    public void close() {
        arena.close();
    }
}
