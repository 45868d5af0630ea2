package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** How the ranks of a service end, and what requests leave. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DecoderServiceTest {
    private static final List<long[]> PROMPT = List.of(new long[] {52});
    private static final Path MIXTRAL = Golden.folder("mixtral");

    @TempDir Path folder;

    /** The threads of all services' ranks. */
    static List<Thread> ranks() {
        return Thread.getAllStackTraces().entrySet().stream()
                .filter(each -> each.getKey().getName().startsWith("deepep-rank"))
                .filter(each -> Arrays.toString(each.getValue()).contains("DecoderService.serve"))
                .map(Map.Entry::getKey)
                .toList();
    }

    private static DecoderService start() throws Exception {
        return DecoderService.start(MIXTRAL, 2, DecoderOptions.DEFAULT);
    }

    private static List<long[]> generate(DecoderService service) {
        return service.generate(PROMPT, 1, _ -> Sampler.greedy());
    }

    /** Only rank 0 has a prompt; the other one's part of the request succeeds. */
    @Test
    void allRanksEndWithTheOneThatFails() throws Exception {
        Sampler failing =
                _ -> {
                    throw new UnsupportedOperationException("a sampler's own");
                };
        try (DecoderService service = start()) {
            List<Thread> ranks = ranks();
            assertThat(ranks).hasSize(2);
            fails(() -> service.generate(PROMPT, 1, _ -> failing));
            for (Thread rank : ranks) {
                assertThat(rank.join(Duration.ofSeconds(20))).isTrue();
            }
            fails(() -> generate(service));
        }
    }

    /** The likeliest token, however low the temperature. */
    @Test
    void lowTemperatures() throws Exception {
        try (DecoderService service = start()) {
            long[] best = service.generate(PROMPT, 4, _ -> Sampler.greedy()).get(0);
            for (double temperature : new double[] {Double.MIN_VALUE, 1e-39, 1e-6}) {
                Sampler sampler = Sampler.topP(temperature, 1, 1);
                assertThat(service.generate(PROMPT, 4, _ -> sampler).get(0)).isEqualTo(best);
            }
        }
    }

    /** A token that the checkpoint has no numbers for spoils its own answer alone. */
    @Test
    void nanIsForgotten() throws Exception {
        Files.copy(MIXTRAL.resolve("config.json"), folder.resolve("config.json"));
        byte[] bytes = Files.readAllBytes(MIXTRAL.resolve("model.safetensors"));
        String header = new String(bytes, StandardCharsets.ISO_8859_1);
        int offsets = header.indexOf("[", header.indexOf("data_offsets", header.indexOf("embed_")));
        int data = 8 + (int) ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong();
        int begin = Integer.parseInt(header.substring(offsets + 1, header.indexOf(",", offsets)));
        int token = 99;
        Arrays.fill(bytes, data + begin + token * 256, data + begin + (token + 1) * 256, (byte) -1);
        Files.write(folder.resolve("model.safetensors"), bytes);
        try (DecoderService service = DecoderService.start(folder, 2, DecoderOptions.DEFAULT)) {
            float[] before = service.logits(PROMPT).get(0);
            long[] tokens = service.generate(PROMPT, 20, _ -> Sampler.greedy()).get(0);
            long[] longer = new long[20];
            Arrays.fill(longer, token);
            assertThat(service.logits(List.of(longer)).get(0)).containsOnly(Float.NaN);
            assertThat(service.logits(PROMPT).get(0)).isEqualTo(before);
            assertThat(service.generate(PROMPT, 20, _ -> Sampler.greedy()).get(0))
                    .isEqualTo(tokens);
        }
    }

    /** Before a rank calls it, which would end it. */
    @Test
    void noSamplerIsRefused() throws Exception {
        try (DecoderService service = start()) {
            assertThatThrownBy(() -> service.generate(PROMPT, 1, _ -> null))
                    .isInstanceOf(NullPointerException.class)
                    .hasMessage("samplers made null for rank 0");
            assertThat(generate(service)).hasSize(1);
        }
    }

    @Test
    void closedServicesRefuse() throws Exception {
        DecoderService service = start();
        service.close();
        service.close();
        assertThat(ranks()).isEmpty();
        assertThatThrownBy(() -> generate(service))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("the service is closed");
        assertThatThrownBy(() -> service.logits(PROMPT)).isInstanceOf(IllegalStateException.class);
    }

    /** A request is served whole or refused, however close() comes between its jobs. */
    @Test
    void requestsBesideCloseAreServedOrRefused() throws Exception {
        for (int round = 0; round < 10; round++) {
            DecoderService service = start();
            Thread closing = Thread.ofPlatform().start(service::close);
            assertThatThrownBy(
                            () -> {
                                while (true) {
                                    assertThat(generate(service)).hasSize(1);
                                }
                            })
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("the service is closed");
            closing.join();
        }
    }

    private static void fails(ThrowingCallable request) {
        assertThatThrownBy(request)
                .isInstanceOf(CompletionException.class)
                .hasRootCauseMessage("a sampler's own");
    }
}
