package io.deepep.djl.example;

/** The numbers of a model. */
record ModelSize(
        int vocabulary,
        int hidden,
        int numLayers,
        int numHeads,
        int numExperts,
        int numTopk,
        int intermediate) {
    /** A toy: 1 million parameters, the shape of DeepSeek-V3 in small. */
    static final ModelSize SMALL = new ModelSize(256, 128, 2, 4, 16, 4, 64);

    int headSize() {
        return hidden / numHeads;
    }
}
