/**
 * A small but complete decoder whose experts are spread over ranks, as an example for your own.
 * {@link io.deepep.djl.decoder.Decoder} loads a Hugging Face checkpoint and generates; {@link
 * io.deepep.djl.decoder.DecoderLayer} is where attention and experts meet.
 */
package io.deepep.djl.decoder;
