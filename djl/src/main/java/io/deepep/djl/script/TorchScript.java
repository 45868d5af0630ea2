package io.deepep.djl.script;

import ai.djl.Device;
import ai.djl.MalformedModelException;
import ai.djl.Model;
import ai.djl.engine.EngineException;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import ai.djl.pytorch.engine.PtSymbolBlock;
import ai.djl.pytorch.jni.IValue;
import ai.djl.pytorch.jni.IValueUtils;
import ai.djl.pytorch.jni.JniUtils;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * A module in TorchScript that has methods and no state. libtorch reads such modules from archives
 * only, so the source is put into one.
 */
final class TorchScript {
    /** How a pickle of the second version begins. */
    private static final String PICKLE = "\u0080\u0002";

    /**
     * Whether this thread's other models are optimized, as DJL's property says; what a program has
     * told {@link JniUtils} besides cannot be asked for. Here, the optimizer would compile kernels
     * for each of the first dozen shapes that it sees, which takes seconds.
     */
    private static final boolean OPTIMIZES =
            Boolean.parseBoolean(System.getProperty("ai.djl.pytorch.graph_optimizer", "true"));

    /** Owns the module. */
    private final Model model;

    private final PtSymbolBlock module;

    /**
     * Compiles a module.
     *
     * @param name the class in the source
     * @param resource the source, beside this class
     * @throws EngineException if libtorch lacks what the source calls
     */
    @SuppressWarnings("MustBeClosedChecker") // for ever
    TorchScript(String name, String resource) {
        model = Model.newInstance(name, Device.cpu(), "PyTorch");
        try (InputStream source = TorchScript.class.getResourceAsStream(resource)) {
            model.load(new ByteArrayInputStream(archive(name, source.readAllBytes())));
        } catch (IOException | MalformedModelException unreadable) {
            model.close();
            throw new IllegalStateException("cannot read " + resource, unreadable);
        } catch (EngineException missing) {
            model.close();
            throw missing;
        }
        module = (PtSymbolBlock) model.getBlock();
    }

    private static byte[] archive(String name, byte[] source) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
            add(zip, "version", bytes("3\n"));
            add(zip, "data.pkl", bytes(pickled(name)));
            add(zip, "constants.pkl", bytes(PICKLE + ")."));
            add(zip, "code/__torch__.py", source);
        }
        return bytes.toByteArray();
    }

    /** An object without attributes but {@code training}, which DJL sets. */
    private static String pickled(String name) {
        return PICKLE + "c__torch__\n" + name + "\n)\u0081}(X\b\0\0\0training\u0089ub.";
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static void add(ZipOutputStream zip, String name, byte[] bytes) throws IOException {
        CRC32 checksum = new CRC32();
        checksum.update(bytes);
        ZipEntry entry = new ZipEntry("archive/" + name);
        entry.setMethod(ZipEntry.STORED);
        entry.setSize(bytes.length);
        entry.setCrc(checksum.getValue());
        zip.putNextEntry(entry);
        zip.write(bytes);
    }

    /** Runs a method on arrays and numbers; the result is attached to the manager. */
    NDArray run(String method, NDManager manager, Object... arguments) {
        return run(method, result -> result.toTensor((PtNDManager) manager), arguments);
    }

    /** The same for several results. */
    NDList runForList(String method, NDManager manager, Object... arguments) {
        return run(method, result -> result.toNDList((PtNDManager) manager), arguments);
    }

    private <R> R run(String method, Function<IValue, R> take, Object... arguments) {
        IValue[] values = new IValue[arguments.length];
        JniUtils.setGraphExecutorOptimize(false);
        try {
            for (int i = 0; i < values.length; i++) {
                values[i] = valueOf(arguments[i]);
            }
            try (IValue result = IValueUtils.runMethod(module, method, values)) {
                return take.apply(result);
            }
        } finally {
            JniUtils.setGraphExecutorOptimize(OPTIMIZES);
            for (IValue value : values) {
                if (value != null) {
                    value.close();
                }
            }
        }
    }

    private static IValue valueOf(Object argument) {
        return switch (argument) {
            case Double number -> IValue.from(number);
            case Long number -> IValue.from(number);
            default -> IValue.from((PtNDArray) argument);
        };
    }
}
