-- Records that the server has confirmed a message: args.message, `<job id>:<number>`.
redis.call('ZREM', unpublished, args.message)
