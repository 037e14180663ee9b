-- Returns  the time of the server with KEYS[1], in ms
local time = redis.call('TIME')
return time[1] * 1000 + math.floor(time[2] / 1000)
