/**
 * A decoder whose experts are spread over ranks, whole and small: read it as a guide to writing
 * one. {@link io.deepep.djl.decoder.Decoder} opens a folder of Hugging Face and generates; {@link
 * io.deepep.djl.decoder.DecoderLayer} is where attention and experts meet.
 */
package io.deepep.djl.decoder;
