package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.MalformedModelException;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import io.deepep.Buffer;
import io.deepep.djl.SafetensorsWriter.Values;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.Transport;
import io.deepep.djl.gate.SoftmaxGate;
import io.deepep.djl.gate.TopkRule;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A layer saved by one rank, loaded by four, of which each reads its own experts. */
class LoadingTest {
    private static final int NUM_RANKS = 4;
    private static final int PER_RANK = Moe.EXPERTS / NUM_RANKS;

    /** DJL closes a model that nobody holds, and its parameters with it. */
    private final List<Model> models = Collections.synchronizedList(new ArrayList<>());

    private final List<ExpertExchange> exchanges = Collections.synchronizedList(new ArrayList<>());

    @TempDir Path folder;

    @AfterEach
    void close() {
        models.forEach(Model::close);
        exchanges.forEach(ExpertExchange::close);
    }

    /** Two ranks have a GPU each where there are two. */
    @ParameterizedTest
    @ValueSource(ints = {2, NUM_RANKS})
    void djlModelFolder(int numRanks) throws InterruptedException {
        Moe.run(1, (_, buffer, manager) -> save(full(buffer, manager), folder));
        checkRanks(numRanks, (moe, manager) -> load(moe, manager.getDevice(), folder));
    }

    /** DJL's default device is the first GPU, also for the rank of the second. */
    @Test
    void parametersOfAnotherGpuAreRefused() throws InterruptedException {
        Moe.run(
                1,
                (_, buffer, manager) -> {
                    ExpertParallelMoE moe = full(buffer, manager);
                    moe.requireParametersOn(manager.getDevice());
                    assertThatThrownBy(() -> moe.requireParametersOn(Device.gpu(7)))
                            .isInstanceOf(IllegalStateException.class)
                            .hasMessageContaining("gate_weight is on " + manager.getDevice())
                            .hasMessageContaining("gpu(7)");
                });
    }

    @Test
    void djlModelFolderLacksExperts() throws InterruptedException {
        Moe.run(
                NUM_RANKS,
                (communicator, buffer, manager) -> {
                    Path own = folder.resolve("rank" + communicator.rank());
                    save(full(buffer, manager), own);
                    load(blank(buffer), manager.getDevice(), own);
                    Path next = folder.resolve("rank" + (communicator.rank() + 1) % NUM_RANKS);
                    communicator.barrier(Duration.ofSeconds(20));
                    assertThatThrownBy(() -> load(blank(buffer), manager.getDevice(), next))
                            .isInstanceOf(MalformedModelException.class)
                            .hasMessageContaining("are not among");
                });
    }

    /** The first rank of a smaller group needs more experts than that of the saved one had. */
    @Test
    void djlModelFolderLacksTheLastExperts() throws InterruptedException {
        Moe.run(
                NUM_RANKS,
                (communicator, buffer, manager) ->
                        save(full(buffer, manager), folder.resolve("rank" + communicator.rank())));
        Moe.run(
                1,
                (_, buffer, manager) ->
                        assertThatThrownBy(
                                        () ->
                                                load(
                                                        blank(buffer),
                                                        manager.getDevice(),
                                                        folder.resolve("rank0")))
                                .isInstanceOf(MalformedModelException.class)
                                .hasMessageContaining("are not among"));
    }

    /** From the hundredth on, DJL puts three digits before a child's name. */
    @Test
    void namesOfManyChildren() throws IOException {
        try (NDManager manager = Moe.manager()) {
            Path file = folder.resolve("many.safetensors");
            SafetensorsWriter.write(
                    file,
                    Map.of("Linear.weight", new Values("F32", new Shape(1, 1), new float[] {7})));
            SequentialBlock many = new SequentialBlock();
            for (int i = 0; i < 100; i++) {
                many.add(Linear.builder().setUnits(1).optBias(false).build());
            }
            try (Safetensors tensors = Safetensors.open(file)) {
                SafetensorsParameters.load(tensors, many, "", manager);
            }
            assertThat(many.getParameters().values())
                    .allMatch(each -> each.getArray().getFloat(0, 0) == 7);
        }
    }

    @Test
    void safetensorsInOneFile() throws InterruptedException {
        Moe.run(
                1,
                (_, buffer, manager) ->
                        SafetensorsWriter.write(
                                folder.resolve("model.safetensors"), weights(buffer, manager)));
        checkRanks(
                NUM_RANKS,
                (moe, manager) -> {
                    try (Safetensors tensors = Safetensors.open(folder)) {
                        SafetensorsParameters.load(tensors, moe, "model.layers.0.mlp.", manager);
                    }
                });
    }

    /** A file per two experts: a rank maps its own file and the one with the gate. */
    @Test
    void safetensorsInSeveralFiles() throws InterruptedException {
        Moe.run(
                1,
                (_, buffer, manager) -> {
                    Map<String, Map<String, Values>> files = new TreeMap<>();
                    Map<String, String> fileOf = new HashMap<>();
                    weights(buffer, manager)
                            .forEach(
                                    (name, values) -> {
                                        String file = fileOf(name);
                                        fileOf.put(name, file);
                                        files.computeIfAbsent(file, _ -> new TreeMap<>())
                                                .put(name, values);
                                    });
                    for (Map.Entry<String, Map<String, Values>> file : files.entrySet()) {
                        SafetensorsWriter.write(folder.resolve(file.getKey()), file.getValue());
                    }
                    SafetensorsWriter.writeIndex(folder, fileOf);
                });
        checkRanks(
                NUM_RANKS,
                (moe, manager) -> {
                    try (Safetensors tensors = Safetensors.open(folder)) {
                        SafetensorsParameters.load(tensors, moe, "model.layers.0.mlp.", manager);
                        assertThat(tensors.numOpenFiles()).isEqualTo(2);
                    }
                });
    }

    private static String fileOf(String name) {
        int at = name.indexOf("experts.");
        return at < 0
                ? "gate.safetensors"
                : "experts-"
                        + (name.charAt(at + "experts.".length()) - '0') / PER_RANK
                        + ".safetensors";
    }

    /** BF16 weights go into FLOAT32 parameters, other tools' names by a rule. */
    @Test
    void bf16WithOtherNames() throws IOException {
        try (NDManager manager = Moe.manager()) {
            SwiGluExpert expert = Moe.expert(manager, 3);
            Map<String, Values> tensors = new TreeMap<>();
            SafetensorsWriter.valuesOf(expert, "", "BF16")
                    .forEach((name, values) -> tensors.put("e." + mixtral(name), values));
            Path file = folder.resolve("mixtral.safetensors");
            SafetensorsWriter.write(file, tensors);
            SwiGluExpert loaded = new SwiGluExpert(Moe.HIDDEN, Moe.INTERMEDIATE);
            try (Safetensors source = Safetensors.open(file)) {
                SafetensorsParameters.load(source, loaded, "e.", manager, LoadingTest::mixtral);
            }
            NDArray x = Moe.tokens(manager, 0, 4);
            NDArray expected = Moe.forward(expert, x);
            NDArray y = Moe.forward(loaded, x);
            assertThat(y.getDataType()).isEqualTo(DataType.FLOAT32);
            assertThat(Moe.maxError(y, expected)).isLessThan(0.01f * Moe.largest(expected));
        }
    }

    private static String mixtral(String name) {
        return name.replace("gate_proj", "w1").replace("up_proj", "w3").replace("down_proj", "w2");
    }

    @Test
    void initializedParametersAreOverwritten() throws IOException {
        try (NDManager manager = Moe.manager()) {
            SwiGluExpert expert = Moe.expert(manager, 3);
            Path file = folder.resolve("expert.safetensors");
            SafetensorsWriter.write(file, SafetensorsWriter.valuesOf(expert, "", "F32"));
            SwiGluExpert other = Moe.expert(manager, 4);
            Block narrow = new SwiGluExpert(Moe.HIDDEN, 8);
            narrow.initialize(manager, DataType.FLOAT32, new Shape(1, Moe.HIDDEN));
            try (Safetensors source = Safetensors.open(file)) {
                SafetensorsParameters.load(source, other, "", manager);
                assertThatThrownBy(() -> SafetensorsParameters.load(source, narrow, "", manager))
                        .isInstanceOf(IllegalArgumentException.class)
                        .hasMessageContaining("(64, 128)")
                        .hasMessageContaining("(8, 128)");
            }
            NDArray x = Moe.tokens(manager, 0, 4);
            assertThat(Moe.maxError(Moe.forward(other, x), Moe.forward(expert, x))).isZero();
        }
    }

    /** Loads into a layer that has no values. */
    private interface Load {
        void into(ExpertParallelMoE moe, NDManager manager)
                throws IOException, MalformedModelException;
    }

    /** Every rank has its experts' values and no others, and the layer computes with them. */
    private static void checkRanks(int numRanks, Load load) throws InterruptedException {
        int perRank = Moe.EXPERTS / numRanks;
        Moe.withExchange(
                numRanks,
                (communicator, exchange, manager) -> {
                    ExpertParallelMoE moe = blank(exchange);
                    load.into(moe, manager);
                    assertThat(moe.firstExpert()).isEqualTo(communicator.rank() * perRank);
                    assertThat(moe.getChildren()).hasSize(1 + perRank);
                    for (int e = 0; e < perRank; e++) {
                        assertSameValues(
                                moe.getChildren().valueAt(1 + e),
                                Moe.expert(manager, moe.firstExpert() + e));
                    }
                    NDArray x = Moe.tokens(manager, communicator.rank(), 8);
                    NDArray expected = Moe.dense(Moe.softmaxGate(manager), x, manager);
                    assertThat(Moe.maxError(Moe.forward(moe, x), expected))
                            .isLessThan(0.01f * Moe.largest(expected));
                });
    }

    private static void assertSameValues(Block actual, Block expected) {
        assertThat(actual.getParameters().size()).isEqualTo(expected.getParameters().size());
        for (int i = 0; i < expected.getParameters().size(); i++) {
            assertThat(actual.getParameters().valueAt(i).getArray().toFloatArray())
                    .containsExactly(expected.getParameters().valueAt(i).getArray().toFloatArray());
        }
    }

    private static ExpertParallelMoE blank(ExpertExchange exchange) {
        return ExpertParallelMoE.builder(exchange, Moe.EXPERTS)
                .gate(new SoftmaxGate(TopkRule.of(Moe.EXPERTS, Moe.TOPK)))
                .experts(_ -> new SwiGluExpert(Moe.HIDDEN, Moe.INTERMEDIATE))
                .build();
    }

    private ExpertParallelMoE blank(Buffer buffer) {
        return blank(open(buffer));
    }

    private ExpertExchange open(Buffer buffer) {
        ExpertExchange exchange = ExpertExchange.normal(buffer, Transport.BF16);
        exchanges.add(exchange);
        return exchange;
    }

    /** The layer of this rank with its values. */
    private ExpertParallelMoE full(Buffer buffer, NDManager manager) {
        ExpertParallelMoE moe =
                ExpertParallelMoETest.layer(open(buffer), Moe.softmaxGate(manager), manager);
        moe.initialize(manager, DataType.FLOAT32, new Shape(1, Moe.HIDDEN));
        return moe;
    }

    private Map<String, Values> weights(Buffer buffer, NDManager manager) {
        return SafetensorsWriter.valuesOf(full(buffer, manager), "model.layers.0.mlp.", "F32");
    }

    private static void save(Block block, Path folder) throws IOException {
        try (Model model = Model.newInstance("moe", "PyTorch")) {
            model.setBlock(block);
            model.save(folder, "moe");
        }
    }

    private void load(Block block, Device device, Path folder)
            throws IOException, MalformedModelException {
        Model model = Model.newInstance("moe", device, "PyTorch");
        models.add(model);
        model.setBlock(block);
        model.load(folder, "moe");
    }
}
