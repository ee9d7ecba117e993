// Blocks of a product of matrices, each a goroutine: blocks SIZE TIMES
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

func main() {
	size, times := 256, 20
	if len(os.Args) > 2 {
		size, _ = strconv.Atoi(os.Args[1])
		times, _ = strconv.Atoi(os.Args[2])
	}
	a, b, c := make([]float64, size*size), make([]float64, size*size), make([]float64, size*size)
	for i := range a {
		a[i], b[i] = float64(i%7), float64(i%5)
	}
	for t := 0; t < times; t++ {
		var rows sync.WaitGroup
		for i := 0; i < size; i++ {
			rows.Add(1)
			go func() {
				defer rows.Done()
				for k := 0; k < size; k++ {
					for j := 0; j < size; j++ {
						c[i*size+j] += a[i*size+k] * b[k*size+j]
					}
				}
			}()
		}
		rows.Wait()
	}
	fmt.Println(c[size+1])
}
