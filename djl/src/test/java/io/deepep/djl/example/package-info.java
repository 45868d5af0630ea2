/** A model served over ranks by HTTP, in one class; the guide is docs/guides/engines.md. */
package io.deepep.djl.example;
