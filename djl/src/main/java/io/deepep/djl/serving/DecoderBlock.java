package io.deepep.djl.serving;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;
import io.deepep.djl.decoder.DecoderService;
import java.util.List;
import java.util.Set;

/**
 * A model on all ranks as DJL's block: prompts INT64 [T] and last the {@link Generation} as an
 * array in, the new tokens INT64 [N] of each prompt out.
 */
final class DecoderBlock extends AbstractBlock {
    private final DecoderService service;
    private final Set<Integer> endTokens;

    DecoderBlock(DecoderService service, Set<Integer> endTokens) {
        this.service = service;
        this.endTokens = endTokens;
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        int numPrompts = inputs.size() - 1;
        List<long[]> prompts =
                inputs.subList(0, numPrompts).stream().map(NDArray::toLongArray).toList();
        Generation wanted = Generation.of(inputs.get(numPrompts));
        NDManager manager = inputs.get(numPrompts).getManager();
        NDList added = new NDList();
        for (long[] tokens :
                service.generate(
                        prompts, wanted.numNewTokens(), wanted::samplerOfRank, endTokens)) {
            added.add(manager.create(tokens));
        }
        return added;
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        throw new UnsupportedOperationException(
                "the number of output tokens depends on the request");
    }
}
