-- Gives back the place of a job that was not added, and deletes its idempotency record; unless the job exists after all, or another request
-- with the key is about to add it.
--
-- args.claim  id of the request that claimed to add it
if redis.call('EXISTS', key) == 1 then return end
if job.record then
  if redis.call('GET', record .. ':claim') ~= args.claim then return end
  redis.call('DEL', record, record .. ':claim')
end
give_back(place, job.identity)
