import type { CallInfo } from '../messages/call.ts'

/**
 * Parts of a path with a digit that are no id: versions (`v2`, `v1.1`, `v1beta1`), and a few letters with a digit or two
 * (`s3`, `ec2`, `oauth2`, `k8s`, `2fa`).
 */
const fixed = /^(v\d+(\.\d+)*([a-z]+\d*)?|\d?[a-z]{1,8}\d{0,2}[a-z]?)$/i

/** The method and path of a call, where parts that look like an id stand for any: `/users/42` and `/users/43` are one route. */
export function routeOf({ method, url }: CallInfo): string {
  const parts = url.pathname.split('/')
  const names = parts.map((part) => (/\d/.test(part) && !fixed.test(part) ? ':' : part))
  return `${method} ${names.join('/')}`
}
