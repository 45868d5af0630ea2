package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.spi.Word;
import io.deepep.testkit.conformance.RankContext;

/** Words in a rank's own buffers, written as if a peer had. */
final class ForgedWords {
    private ForgedWords() {}

    static NormalNvlLayout nvlLayout(RankContext context) {
        return NormalNvlLayout.of(context.buffer().options().normal(), context.topology());
    }

    static NormalRdmaLayout rdmaLayout(RankContext context) {
        Buffer buffer = context.buffer();
        return NormalRdmaLayout.of(
                buffer.options().dispatchConfig(), buffer.options().normal(), context.topology());
    }

    /** Stores a word. */
    static void store(RankContext context, long offset, boolean rdma, long value) {
        Tensor there = context.buffer().getLocalBufferTensor(DType.I64, 1, offset, rdma);
        Tensor word = context.backend().download(there);
        word.setLong(value, 0);
        context.backend().write(word, there);
    }

    /** Loads a word. */
    static long load(RankContext context, long offset, boolean rdma) {
        Tensor there = context.buffer().getLocalBufferTensor(DType.I64, 1, offset, rdma);
        return context.backend().download(there).getLong(0);
    }

    /** Has words of an earlier call count for another. */
    static void count(RankContext context, long offset, int numWords, boolean rdma, int epoch) {
        Tensor there = context.buffer().getLocalBufferTensor(DType.I64, numWords, offset, rdma);
        Tensor words = context.backend().download(there);
        for (int i = 0; i < numWords; i++) {
            words.setLong(Word.of(epoch, Word.value(words.getLong(i))), i);
        }
        context.backend().write(words, there);
    }
}
