-- token-bucket: a bucket that takes bursts, and after them the limit in every window (bucket.lua).
algorithms['token-bucket'] = bucket
