/** Functions of libtorch that DJL lacks, in TorchScript. Not exported. */
package io.deepep.djl.script;
