/**
 * A mixture-of-experts transformer served over ranks: {@link io.deepep.djl.example.ServeMoe} is the
 * program, {@link io.deepep.djl.example.MoeTransformer} the model, {@link
 * io.deepep.djl.example.MoeService} what runs it on every rank. The guide is
 * docs/guides/engines.md.
 */
package io.deepep.djl.example;
