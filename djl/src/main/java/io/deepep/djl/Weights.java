package io.deepep.djl;

import ai.djl.Device;
import ai.djl.engine.EngineException;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.training.initializer.Initializer;
import io.deepep.DType;
import io.deepep.Tensor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/**
 * The tensors of a checkpoint, loaded as arrays of one type on one device. FP8 weights, as DeepSeek
 * publishes them, are multiplied by their FP32 scales, one for each block of 128 x 128, which have
 * the name of the weight with {@code _scale_inv}.
 */
public final class Weights implements AutoCloseable {
    private static final String SCALES = "_scale_inv";
    private static final int BLOCK = 128;

    private final Safetensors tensors;
    private final NDManager manager;
    private final DType type;
    private final String prefix;

    /** Null where libtorch copies by itself. */
    private final PinnedStaging staging;

    /** Null where files do not come directly. */
    private final CuFile direct;

    private Weights(
            Safetensors tensors,
            NDManager manager,
            DType type,
            String prefix,
            PinnedStaging staging,
            CuFile direct) {
        this.tensors = tensors;
        this.manager = manager;
        this.type = type;
        this.prefix = prefix;
        this.staging = staging;
        this.direct = direct;
    }

    /**
     * Loads tensors of a checkpoint.
     *
     * @param tensors the checkpoint, which must stay open as long as tensors are loaded
     * @param manager the owner of the arrays, which are on its device
     * @param type BF16 or F32, the type of weights
     */
    public static Weights of(Safetensors tensors, NDManager manager, DType type) {
        if (type != DType.BF16 && type != DType.F32) {
            throw new IllegalArgumentException("type=" + type + " is neither BF16 nor F32");
        }
        CuFile direct = CuFile.orNull(manager.getDevice());
        return new Weights(tensors, manager, type, "", staging(manager.getDevice()), direct);
    }

    /** Null where there is no pinned memory: libtorch then copies by itself. */
    private static PinnedStaging staging(Device device) {
        try {
            return device.isGpu() ? new PinnedStaging(device) : null;
        } catch (EngineException noPinnedMemory) {
            return null;
        }
    }

    /** The tensors whose names begin with {@code name} and a dot, given without that beginning. */
    public Weights at(String name) {
        return new Weights(tensors, manager, type, prefix + name + ".", staging, direct);
    }

    /** Waits until all tensors are on the device. Also closes what {@link #at} returned. */
    @Override
    public void close() {
        if (staging != null) {
            staging.close();
        }
        if (direct != null) {
            direct.close();
        }
    }

    /** What owns the arrays. */
    public NDManager manager() {
        return manager;
    }

    /** Whether the checkpoint has a tensor. */
    public boolean has(String name) {
        return tensors.names().contains(prefix + name);
    }

    /**
     * A matrix to multiply with.
     *
     * @throws IllegalArgumentException if there is no such tensor, or its shape or type differs
     */
    public NDArray matrix(String name, long... shape) throws IOException {
        NDArray array = TorchTensors.empty(manager, type, shape);
        load(name, array);
        return array;
    }

    /** Values to compute with in FLOAT32, such as a norm's. */
    public NDArray vector(String name, long... shape) throws IOException {
        NDArray array = TorchTensors.empty(manager, DType.F32, shape);
        load(name, array);
        return array;
    }

    /** A linear layer {@code name.weight} [N,K], with {@code name.bias} if there is one. */
    public Projection projection(String name, long outputs, long inputs) throws IOException {
        return projection(name, outputs, inputs, has(name + ".bias"));
    }

    /** The same with a bias, which there must be, or without. */
    public Projection projection(String name, long outputs, long inputs, boolean biased)
            throws IOException {
        return projections(inputs, biased, new Outputs(name, outputs));
    }

    /** Outputs of a linear layer. */
    public record Outputs(String name, long number) {}

    /** Linear layers with the same inputs as one, whose outputs come one layer after the other. */
    public Projection projections(long inputs, boolean biased, Outputs... layers)
            throws IOException {
        long outputs = Stream.of(layers).mapToLong(Outputs::number).sum();
        NDArray weight = empty(outputs, inputs);
        NDArray bias = biased ? empty(outputs) : null;
        long first = 0;
        try (NDManager scope = manager.newSubManager()) {
            for (Outputs layer : layers) {
                NDIndex own = new NDIndex().addSliceDim(first, first + layer.number);
                load(layer.name + ".weight", weight.get(scope, own));
                if (biased) {
                    load(layer.name + ".bias", bias.get(scope, own));
                }
                first += layer.number;
            }
        }
        return new Projection(weight, bias);
    }

    /** Gives a block its own parameters, in FLOAT32. Their shapes are set. */
    void load(Block block, String name) throws IOException {
        for (Parameter parameter : block.getDirectParameters().values()) {
            parameter.freeze(true);
            parameter.setInitializer(Initializer.ZEROS);
            parameter.initialize(manager, DataType.FLOAT32);
            load(name + "." + parameter.getName(), parameter.getArray());
        }
    }

    /** An array of the type to multiply in, not initialised. */
    NDArray empty(long... shape) {
        return TorchTensors.empty(manager, type, shape);
    }

    /** Copies a tensor into an array of its shape, converting it. */
    void load(String name, NDArray target) throws IOException {
        load(name, target, view -> view);
    }

    /** Copies a part of a tensor: the rows of one rank's experts for example. */
    void load(String name, NDArray target, UnaryOperator<NDArray> part) throws IOException {
        String full = prefix + name;
        try (NDManager onCpu = NDManager.newBaseManager(Device.cpu(), "PyTorch");
                NDManager scope = manager.newSubManager()) {
            NDArray given = numbers(full, part(full, onCpu, part));
            if (!given.getShape().equals(target.getShape())) {
                throw new IllegalArgumentException(
                        "%s has shape %s, but the model needs %s"
                                .formatted(full, given.getShape(), target.getShape()));
            }
            if (TorchTensors.hasType(given, DType.FP8_E4M3)) {
                NDArray values = TorchTensors.empty(scope, DType.FP8_E4M3, shapeOf(given));
                copy(given, values);
                TorchTensors.cast(scaled(full, values, onCpu, scope), target);
            } else {
                copy(given, target);
            }
        }
    }

    /** Not bytes that stand for something else. */
    private static NDArray numbers(String full, NDArray given) {
        if (given.getDataType() == DataType.UINT8) {
            throw new IllegalArgumentException(
                    full
                            + " has dtype U8, which only _blocks and _scales of MXFP4 may have: convert it first");
        }
        return given;
    }

    private NDArray part(String full, NDManager onCpu, UnaryOperator<NDArray> part)
            throws IOException {
        NDArray view = tensors.view(onCpu, full);
        try {
            return part.apply(view);
        } catch (EngineException | IllegalArgumentException tooSmall) {
            throw new IllegalArgumentException(
                    "%s has shape %s, which does not hold the experts that the model needs: %s"
                            .formatted(full, view.getShape(), tooSmall.getMessage()),
                    tooSmall);
        }
    }

    /**
     * Copies a part of a tensor in MXFP4, {@code name_blocks} and {@code name_scales}.
     *
     * @param part takes {@code [n,G,...]} out of both
     */
    void loadMxfp4(String name, NDArray target, Mxfp4 format, UnaryOperator<NDArray> part)
            throws IOException {
        try (NDManager onCpu = NDManager.newBaseManager(Device.cpu(), "PyTorch");
                NDManager scope = manager.newSubManager()) {
            NDArray blocks = onDevice(part(prefix + name + "_blocks", onCpu, part), scope);
            NDArray scales = onDevice(part(prefix + name + "_scales", onCpu, part), scope);
            Shape given = blocks.getShape();
            Shape expected = target.getShape();
            if (given.dimension() != 3
                    || !scales.getShape().equals(given.slice(0, 2))
                    || given.get(0) != expected.get(0)
                    || given.get(2) != Mxfp4.BLOCK_BYTES
                    || 2 * given.get(1) * Mxfp4.BLOCK_BYTES != expected.get(1)) {
                throw new IllegalArgumentException(
                        "%s%s_blocks and _scales have %s and %s per expert, but the model needs %s, in blocks of 32"
                                .formatted(prefix, name, given, scales.getShape(), expected));
            }
            TorchTensors.cast(format.values(blocks, scales), target);
        }
    }

    private static NDArray onDevice(NDArray array, NDManager scope) {
        NDArray moved = array.toDevice(scope.getDevice(), true);
        moved.attach(scope);
        return moved;
    }

    /** Bytes that stay as they are come directly or by the staging, all else by libtorch. */
    private void copy(NDArray given, NDArray target) throws IOException {
        if (staging == null || !TorchTensors.sameBytes(given, target)) {
            TorchTensors.cast(given, target);
            return;
        }
        MemorySegment bytes = TorchTensors.borrow(given).segment();
        Tensor to = TorchTensors.borrow(target); // the model's weights go when it is closed
        Safetensors.Place place = direct == null ? null : tensors.placeOf(bytes);
        if (place == null || !direct.read(place.file(), place.offset(), bytes.byteSize(), to)) {
            staging.copy(bytes, to);
        }
    }

    private NDArray scaled(String name, NDArray values, NDManager onCpu, NDManager scope)
            throws IOException {
        if (!tensors.names().contains(name + SCALES)) {
            throw new IllegalArgumentException(name + " is FP8 and has no scales " + name + SCALES);
        }
        NDArray given = numbers(name + SCALES, tensors.view(onCpu, name + SCALES));
        Shape shape = values.getShape();
        Shape blocks =
                new Shape(
                        Arrays.stream(shape.getShape())
                                .map(size -> Math.ceilDiv(size, BLOCK))
                                .toArray());
        if (shape.dimension() != 2 || !given.getShape().equals(blocks)) {
            throw new IllegalArgumentException(
                    "%s%s has shape %s; %s in blocks of 128 x 128 has %s"
                            .formatted(name, SCALES, given.getShape(), shape, blocks));
        }
        NDArray scales = TorchTensors.empty(scope, DType.F32, shapeOf(given));
        TorchTensors.cast(given, scales);
        NDArray perValue =
                scales.repeat(0, BLOCK)
                        .repeat(1, BLOCK)
                        .get(new NDIndex(":{}, :{}", shape.get(0), shape.get(1)));
        return values.toType(DataType.FLOAT32, false).mul(perValue);
    }

    private static long[] shapeOf(NDArray array) {
        return array.getShape().getShape();
    }
}
