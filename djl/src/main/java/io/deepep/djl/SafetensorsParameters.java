package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.BlockList;
import ai.djl.nn.Parameter;
import ai.djl.training.initializer.Initializer;
import io.deepep.DType;
import java.io.IOException;
import java.util.Locale;
import java.util.function.UnaryOperator;

/**
 * Loads a block's parameters from safetensors by name. The name of a parameter is its path: the
 * names of its parents without the number that DJL puts before them, joined by dots. An {@link
 * ExpertParallelMoE} called {@code mlp} has {@code mlp.gate.weight}, {@code
 * mlp.experts.17.down_proj.weight} and so on, only for its own experts: a rank loads no others.
 *
 * <p>Loaded parameters are frozen.
 */
public final class SafetensorsParameters {
    private SafetensorsParameters() {}

    /**
     * Loads a block whose parameters have the same names as in the file.
     *
     * @param prefix the beginning of every name in the file, such as {@code model.layers.3.}; may
     *     be empty
     * @param manager the owner of values that are created, FLOAT32, for parameters that have none
     *     yet; existing values are overwritten in their type
     * @throws IllegalArgumentException if a tensor is missing or has a different shape
     */
    public static void load(Safetensors tensors, Block block, String prefix, NDManager manager)
            throws IOException {
        load(tensors, block, prefix, manager, UnaryOperator.identity());
    }

    /**
     * Loads a block whose parameters have other names in the file.
     *
     * @param rename maps the full name of a parameter to that of its tensor, for example for
     *     Mixtral's experts: {@code name -> name.replace("gate_proj", "w1")}
     * @see #load(Safetensors, Block, String, NDManager)
     */
    public static void load(
            Safetensors tensors,
            Block block,
            String prefix,
            NDManager manager,
            UnaryOperator<String> rename)
            throws IOException {
        for (Parameter parameter : block.getDirectParameters().values()) {
            load(tensors, rename.apply(prefix + parameter.getName()), parameter, manager);
        }
        BlockList children = block.getChildren();
        for (int i = 0; i < children.size(); i++) {
            int digits = String.format(Locale.ROOT, "%02d", i + 1).length();
            String name = children.keyAt(i).substring(digits);
            load(tensors, children.valueAt(i), prefix + name + ".", manager, rename);
        }
    }

    private static void load(
            Safetensors tensors, String name, Parameter parameter, NDManager manager)
            throws IOException {
        try (NDArray view = tensors.view(manager, name)) {
            parameter.freeze(true);
            Shape expected = parameter.getShape();
            if (expected != null && !expected.equals(view.getShape())) {
                throw new IllegalArgumentException(
                        name + " has shape " + view.getShape() + ", the parameter has " + expected);
            }
            if (!parameter.isInitialized()) {
                if (expected == null) {
                    parameter.setShape(view.getShape());
                }
                parameter.setInitializer(Initializer.ZEROS);
                parameter.initialize(manager, DataType.FLOAT32);
            }
            if (TorchTensors.hasType(view, DType.FP8_E4M3)) {
                throw new IllegalArgumentException(
                        name + " is FP8, with scales that would be lost; load it with Weights");
            }
            TorchTensors.cast(view, parameter.getArray());
        }
    }
}
