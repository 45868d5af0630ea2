/**
 * Network cards that a process drives itself: bindings of libibverbs and of libmlx5's DevX, the
 * firmware's commands, and queue pairs whose queues lie in memory of the user.
 */
package io.deepep.cuda.rdma;
