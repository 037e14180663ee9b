/** Waits for work to end, and for so long at most; whether it has. What it rejects with is for who began it. */
export async function endsWithin(work: Promise<unknown>, patienceMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const tooLong = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), patienceMs)
  })
  const ended = work.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([ended, tooLong])
  } finally {
    clearTimeout(timer)
  }
}
