/** A decoder for Hugging Face checkpoints, and mixture-of-experts blocks for DJL on PyTorch. */
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // DJL, Netty
module io.deepep.djl {
    requires transitive ai.djl.api;
    requires ai.djl.pytorch_engine;
    requires com.google.gson;
    requires transitive io.deepep;
    requires static ai.djl.tokenizers;
    requires static io.netty.buffer;
    requires static io.netty.codec;
    requires static io.netty.codec.http;
    requires static io.netty.common;
    requires static io.netty.transport;
    requires java.management;
    // What DJL needs and, as an automatic module, cannot say.
    requires org.slf4j;

    exports io.deepep.djl;
    exports io.deepep.djl.decoder;
    exports io.deepep.djl.exchange;
    exports io.deepep.djl.gate;

    // Named in serving.properties, and made from there.
    opens io.deepep.djl.serving;
}
