import type { CallInfo } from './call.ts'

/** `v2`, `v1.1`, `v1beta1`. */
const version = 'v\\d+(\\.\\d+)*([a-z]+\\d*)?'

/** `s3`, `ec2`, `oauth2`, `k8s`, `2fa`: a few letters with a digit or two. */
const word = '\\d?[a-z]{1,8}\\d{0,2}[a-z]?'

const isFixed = new RegExp(`^(${version}|${word})$`, 'i')

/** The method and path of a call, where parts that look like an id stand for any: `/users/42` and `/users/43` are one route. */
export function routeOf({ method, url }: CallInfo): string {
  const parts = url.pathname.split('/')
  const names = parts.map((part) => (/\d/.test(part) && !isFixed.test(part) ? ':' : part))
  return `${method} ${names.join('/')}`
}
