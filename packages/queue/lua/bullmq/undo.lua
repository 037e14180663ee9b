-- Gives the place of a job back that was not added, and forgets its idempotency record; unless the job is there all the same, or another
-- request with the key is about to add it.
--
-- args.claim  who claimed to add it
if redis.call('EXISTS', key) == 1 then return end
if job.record then
  if redis.call('GET', record .. ':claim') ~= args.claim then return end
  redis.call('DEL', record, record .. ':claim')
end
give_back(place, job.identity)
