/** Tables and numbers as text. */
package io.deepep.bench.text;
